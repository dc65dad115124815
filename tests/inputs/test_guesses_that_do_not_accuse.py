"""What a guess gets wrong is not the Function's mistake."""

from __future__ import annotations

import pytest
import torch

import gradsmith as gs


class Affine(torch.autograd.Function):
    """`flag` came later, and backward was forgotten: the one mistake there is."""

    @staticmethod
    def forward(ctx, x, w, b, flag):
        ctx.save_for_backward(x, w)
        return x @ w.t() + b

    @staticmethod
    def backward(ctx, grad_output):
        x, w = ctx.saved_tensors
        return grad_output @ w, grad_output.t() @ x, grad_output.sum(0)


def test_shapes_are_not_blamed_where_the_count_keeps_backward_from_running():
    report = gs.check(Affine)
    assert [f.rule for f in report.findings if f.severity == "error"] == ["return-count"]


class ReducedTooFar(torch.autograd.Function):
    """The count is right, and the shape of the gradient is wrong on any inputs."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return (2 * x * grad_output).sum()


def test_a_shape_that_is_wrong_on_any_inputs_is_an_error():
    assert "gradient-shape" in [f.rule for f in gs.check(ReducedTooFar).findings if f.severity == "error"]


class Arccosine(torch.autograd.Function):
    """Only defined between -1 and 1; its gradient is kept finite everywhere."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.acos(x)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return -grad_output / (1 - x * x).clamp(min=1e-7).sqrt()


def test_inputs_are_guessed_where_forward_is_defined():
    (subject,) = gs.check(Arccosine).subjects
    assert subject.verdict == "verified", subject.reason


class HalvingRoot(torch.autograd.Function):
    """y + y ** 3 = x, found by halving an interval; the derivative is that of the limit."""

    @staticmethod
    def forward(ctx, x, tol=1e-3):
        low, high = -1 - x.abs(), 1 + x.abs()
        while (high - low).max() > tol:
            middle = (low + high) / 2
            below = middle + middle**3 < x
            low, high = torch.where(below, middle, low), torch.where(below, high, middle)
        y = (low + high) / 2
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad_output):
        (y,) = ctx.saved_tensors
        return grad_output / (1 + 3 * y * y), None


class Angle(torch.autograd.Function):
    """Backward must not divide by zero."""

    @staticmethod
    def forward(ctx, y, x, eps=1e-6):
        ctx.save_for_backward(y, x)
        ctx.eps = eps
        return torch.atan2(y, x)

    @staticmethod
    def backward(ctx, grad_output):
        y, x = ctx.saved_tensors
        below = x * x + y * y + ctx.eps
        return grad_output * x / below, -grad_output * y / below, None


@pytest.mark.parametrize("function", [HalvingRoot, Angle])
def test_a_tolerance_that_can_be_as_small_as_one_likes_accuses_nobody(function):
    report = gs.check(function)
    assert [f for f in report.findings if f.severity != "info" and f.rule != "intermediate-saved"] == []
    assert report.subjects[0].verdict == "unverified" and "smaller" in report.subjects[0].reason


class ForgottenEps(torch.autograd.Function):
    """Here forward computes with eps, and backward forgets it."""

    @staticmethod
    def forward(ctx, x, eps=1e-3):
        ctx.save_for_backward(x)
        return x / (x * x + eps).sqrt()

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * (1 / x.abs() - x * x / x.abs() ** 3), None


def test_an_eps_that_forward_computes_with_belongs_to_the_derivative():
    assert gs.check(ForgottenEps).subjects[0].verdict == "refuted"


class OtherWeights(torch.autograd.Function):
    """Feedback alignment: what goes back goes through weights of its own."""

    @staticmethod
    def forward(ctx, x, weight, back):
        ctx.save_for_backward(x, weight, back)
        return x @ weight.t()

    @staticmethod
    def backward(ctx, grad_output):
        x, _, back = ctx.saved_tensors
        return grad_output @ back, grad_output.t() @ x, torch.zeros_like(back)


def test_weights_for_the_way_back_are_the_author_s_to_choose():
    report = gs.check(OtherWeights)
    assert [f.rule for f in report.findings if f.severity == "error"] == []
    assert report.subjects[0].reason.startswith("the gradient is right where 'back' is the same as input 2")


class Drawn(torch.autograd.Function):
    """`x.new` makes a tensor of that size; of a tensor it would make another one with the same memory."""

    @staticmethod
    def forward(ctx, mean, extent):
        return mean + mean.new(extent).normal_()

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output, None


def test_what_was_only_guessed_to_be_a_tensor_is_not_written_into():
    report = gs.check(Drawn)
    assert "inplace-input" not in [f.rule for f in report.findings if f.severity != "info"]


class ProgrammedWeights(torch.autograd.Function):
    """The gradient of forward without what is drawn there."""

    @staticmethod
    def forward(ctx, w):
        return w * (1 + 0.1 * torch.randn_like(w))

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output


class ForgottenMask(torch.autograd.Function):
    """Nothing speaks for this one."""

    @staticmethod
    def forward(ctx, w):
        return w * (torch.rand_like(w) > 0.5) * 2

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output


def test_noise_that_gradients_pass_by_looks_meant():
    assert gs.check(ProgrammedWeights).subjects[0].verdict == "unverified"
    assert gs.check(ForgottenMask).subjects[0].verdict == "refuted"


class Replaced(torch.autograd.Function):
    """Hands the caller's own gradient back."""

    @staticmethod
    def forward(ctx, x, wanted):
        ctx.save_for_backward(wanted)
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad_output):
        (wanted,) = ctx.saved_tensors
        return wanted, None


def test_a_gradient_that_replaces_that_of_the_identity_is_no_error():
    assert [f.rule for f in gs.check(Replaced).findings if f.severity == "error"] == []


class PickedProduct(torch.autograd.Function):
    """Multiplies what goes to the same place; `places` is a list, though scatter takes more dimensions, too."""

    @staticmethod
    def forward(ctx, src, index, out_size):
        out = src.new_ones(out_size).scatter_reduce(0, index, src, "prod")
        ctx.save_for_backward(out, src, index)
        return out

    @staticmethod
    def backward(ctx, grad_out):
        out, src, index = ctx.saved_tensors
        return (grad_out * out)[index] / src, None, None


class PickedTwice(PickedProduct):
    @staticmethod
    def backward(ctx, grad_out):
        out, src, index = ctx.saved_tensors
        return 2 * (grad_out * out)[index] / src, None, None


def test_an_index_of_more_dimensions_than_were_meant():
    report = gs.check(PickedProduct, level="quick")
    assert report.subjects[0].verdict != "refuted"
    assert [f.rule for f in report.findings if f.severity != "info"] == []
    assert gs.check(PickedTwice, level="quick").subjects[0].verdict == "refuted"


class Phase(torch.autograd.Function):
    """Wants complex numbers, and says so only by asking for the imaginary part."""

    @staticmethod
    def forward(ctx, z):
        size = (z.real**2 + z.imag**2).sqrt()
        ctx.save_for_backward(z, size)
        return z / size

    @staticmethod
    def backward(ctx, grad_output):
        z, size = ctx.saved_tensors
        return (grad_output - z * (grad_output.conj() * z).real / size**2) / size


def test_complex_numbers_are_guessed_where_their_parts_are_asked_for():
    (subject,) = gs.check(Phase, level="quick").subjects
    assert subject.verdict == "verified", subject.reason
    assert "complex128" in subject.inputs_code


class Conjugated(torch.autograd.Function):
    """Returns a gradient that is conjugated by a mark only."""

    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x @ w.t()

    @staticmethod
    def backward(ctx, grad_output):
        x, w = ctx.saved_tensors
        return (grad_output.conj() @ w).conj(), grad_output.t() @ x.conj()


def test_a_gradient_that_is_only_marked_as_conjugated_is_compared():
    (subject,) = gs.check(Conjugated).subjects
    assert subject.verdict == "verified", subject.reason
