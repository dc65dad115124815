"""Gradients that are meant to differ from the derivative: recognised by a step, by noise, by a test on grad_output; never by words."""

from __future__ import annotations

import pytest
import torch

import gradsmith as gs

X = torch.linspace(-2.03, 2.29, 12, dtype=torch.float64).view(3, 4).requires_grad_()


class Levels(torch.autograd.Function):
    """Rounds to levels whose size depends on the data, so that forward is not flat."""

    @staticmethod
    def forward(ctx, x):
        size = x.abs().mean() / 4
        return (x / size).round() * size

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output


class Truncated(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return (x * 8).to(torch.int32).to(x.dtype) * x.abs().max() / 8

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output.clamp(-1, 1)


class Floor(torch.autograd.Function):
    """max(x, floor), and a way back up for what lies below it."""

    @staticmethod
    def forward(ctx, x, floor):
        ctx.save_for_backward(x)
        ctx.floor = floor
        return x.clamp(min=floor)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * ((x >= ctx.floor) | (grad_output < 0)), None


class ClampSTE(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clamp(-1, 1)

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output


class SoftRamp(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clamp(min=0)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * torch.sigmoid(3 * x)


MEANT = [(Levels, (X,)), (Truncated, (X,)), (Floor, (X, 0.5)), (ClampSTE, (X,)), (SoftRamp, (X,))]


@pytest.mark.parametrize(("function", "inputs"), MEANT, ids=lambda v: getattr(v, "__name__", ""))
def test_a_surrogate_is_asked_about_and_not_accused(function, inputs):
    report = gs.check(function, *inputs)
    assert report.subjects[0].verdict == "unverified"
    rules = {g.rule for f in report.findings for g in (f, *f.symptoms)}
    assert "undeclared-surrogate" in rules
    assert not [f for f in report.findings if f.severity == "error"]


class Ramp(torch.autograd.Function):
    """A clamp whose backward forgot the mask: nothing says that this is meant."""

    @staticmethod
    def forward(ctx, x):
        return x.clamp(min=0)

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output


class System(torch.autograd.Function):
    """A SYSTEM, not an abbreviation."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sin()

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return -grad_output * x.cos()


@pytest.mark.parametrize("function", [Ramp, System])
def test_a_mistake_is_still_an_error(function):
    report = gs.check(function, X)
    assert report.subjects[0].verdict == "refuted"
    assert [f.rule for f in report.findings if f.severity == "error"] == ["wrong-gradient"]


def test_harm_that_running_shows_gives_the_source_lens_its_full_weight():
    from gradsmith import catalog
    from gradsmith.findings import Finding
    from gradsmith.folding import fold

    suggested = catalog.find("ignored-grad-output").stamped(
        Finding("Blind.backward never uses grad_output.", function="Blind", severity="warning"), "lint"
    )
    measured = catalog.find("wrong-gradient").stamped(Finding("Blind is wrong.", function="Blind"), "check")
    (root,) = fold([suggested, measured])
    assert (root.rule, root.severity) == ("ignored-grad-output", "error")
    (alone,) = fold([suggested])
    assert alone.severity == "warning"


class Rung(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return (x >= 0).to(x.dtype)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * torch.exp(-x.abs())


class ReverseGrad(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad_output):
        return -grad_output


def test_elements_exactly_on_the_step_are_no_slope():
    on_it = torch.linspace(-1, 1, 5, dtype=torch.float64, requires_grad=True)
    report = gs.check(Rung, on_it, level="quick")
    assert [(f.rule, f.severity) for f in report.findings if f.severity != "info"] == [
        ("undeclared-surrogate", "warning")
    ]


class round_ste(Levels):
    """As some people call their classes."""


class RoundsToLevels(Levels):
    """The same one under a name that says nothing."""


@pytest.mark.parametrize("function", [ReverseGrad, round_ste, RoundsToLevels])
def test_an_undeclared_surrogate_weighs_the_same_whatever_it_is_called(function):
    report = gs.check(function, X, level="quick")
    assert [f.severity for f in report.findings if f.rule == "undeclared-surrogate"] == ["warning"]
    assert report.subjects[0].verdict == "unverified"


class Heavier(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.sin()

    @staticmethod
    def backward(ctx, grad_output):
        return 3 * grad_output


class HeavierUnexplained(Heavier):
    pass


def heavier(x):
    """The sine, with a pseudo-gradient of 3."""
    return Heavier.apply(x)


def heavier_unexplained(x):
    """The sine."""
    return HeavierUnexplained.apply(x)


def test_who_applies_it_may_say_what_it_is_and_is_told_how_to_declare_it():
    report = gs.check(Heavier, X)
    assert report.subjects[0].verdict == "refuted"
    (finding,) = [f for f in report.findings if f.rule == "wrong-gradient"]
    assert "The source says `pseudo-gradient`" in finding.advice
    assert "# gradsmith: surrogate[custom]" in finding.advice
    silent = gs.check(HeavierUnexplained, X)
    assert silent.subjects[0].verdict == "refuted"
    assert "The source says" not in " ".join(str(f.advice) for f in silent.findings)


class Noisy(torch.autograd.Function):
    @staticmethod
    def forward(ctx, w):
        return w * (1 + 0.1 * torch.randn_like(w))

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output


class DrawnInPlace(torch.autograd.Function):
    @staticmethod
    def forward(ctx, w):
        ctx.save_for_backward(w)
        return w.sin() * (1 + torch.empty_like(w).normal_(0.0, 0.1))

    @staticmethod
    def backward(ctx, grad_output):
        (w,) = ctx.saved_tensors
        return grad_output * w.cos()


class NoisyAndWrong(Noisy):
    """Noise, and a factor on top."""

    @staticmethod
    def backward(ctx, grad_output):
        return 3 * grad_output


class ForgottenMask(torch.autograd.Function):
    """Noise, surrogate, straight-through: dropout without its mask is none of it."""

    @staticmethod
    def forward(ctx, w):
        return w * (torch.rand_like(w) > 0.5) * 2

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output


def test_the_gradient_of_forward_without_its_noise_looks_meant_without_a_word():
    assert [gs.check(f, X).subjects[0].verdict for f in (Noisy, DrawnInPlace)] == ["unverified"] * 2
    assert [gs.check(f, X).subjects[0].verdict for f in (NoisyAndWrong, ForgottenMask)] == ["refuted"] * 2


class Mixed(torch.autograd.Function):
    """Shake-shake: backward mixes by a number of its own."""

    @staticmethod
    def forward(ctx, x, y, alpha, beta):
        ctx.beta = beta
        return x * alpha + y * (1 - alpha)

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * ctx.beta, grad_output * (1 - ctx.beta), None, None


class MixedTwice(Mixed):
    """Here the second part is wrong, whatever beta is for."""

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * ctx.beta, grad_output * ctx.beta, None, None


class OwnWayBack(torch.autograd.Function):
    """Feedback alignment: weights of their own for the way back."""

    @staticmethod
    def forward(ctx, x, weight, back):
        ctx.save_for_backward(x, back)
        return x @ weight.t()

    @staticmethod
    def backward(ctx, grad_output):
        x, back = ctx.saved_tensors
        return grad_output @ back, grad_output.t() @ x, None


@pytest.mark.parametrize("as_tensors", [False, True])
def test_a_number_that_only_backward_uses_is_there_for_the_gradient(as_tensors):
    numbers = [torch.tensor(n, dtype=torch.float64) if as_tensors else n for n in (0.3, 0.8)]
    other = (X.detach() + 1).requires_grad_()
    report = gs.check(Mixed, X, other, *numbers)
    assert report.subjects[0].verdict == "unverified"
    assert "with 'beta' in the place of 'alpha'" in next(
        f.message for f in report.findings if f.rule == "undeclared-surrogate"
    )
    assert gs.check(Mixed, X, other, *numbers, gradient="surrogate").subjects[0].verdict == "verified"
    assert gs.check(MixedTwice, X, other, *numbers).subjects[0].verdict == "refuted"


def test_weights_that_only_backward_uses_are_there_for_the_gradient():
    weights = [torch.randn(5, 4, dtype=torch.float64, requires_grad=needed) for needed in (True, False)]
    report = gs.check(OwnWayBack, X, *weights)
    assert [f.rule for f in report.findings if f.severity != "info"] == ["undeclared-surrogate"]
