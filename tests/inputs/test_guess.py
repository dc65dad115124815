"""Guessed inputs: found for what people write, said to be guessed, and never an accusation they cannot carry."""

from __future__ import annotations

import functions_without_inputs
import lenient_functions
import pytest
import torch
from torch import Tensor

import gradsmith as gs
from gradsmith.inputs.guess import guess
from gradsmith.inputs.guess.candidates import Sizes, candidates
from gradsmith.inputs.guess.clues import Clue, clues
from gradsmith.inputs.guess.proposals import FRAMES, made
from gradsmith.lab.subject.target import resolve

GUESSABLE = [
    functions_without_inputs.Linear,
    functions_without_inputs.Shaped,
    functions_without_inputs.Reduce,
    functions_without_inputs.LogDet,
    functions_without_inputs.Attention,
    functions_without_inputs.Gather,
    functions_without_inputs.Edges,
]


@pytest.mark.parametrize("function", GUESSABLE, ids=lambda f: f.__name__)
def test_a_guess_makes_every_gradient_visible(function):
    found = guess(resolve(function))
    assert found.works, found.errors
    assert not found.trouble
    inputs = [a for a in found.args if isinstance(a, Tensor) and a.requires_grad]
    out = function.apply(*found.args)
    for grad in torch.autograd.grad(out, inputs, torch.randn_like(out)):
        assert bool(torch.isfinite(grad).all())
        assert bool(grad.abs().gt(0).any())


def test_sizes_are_distinct_and_precision_is_double():
    x, weight, bias = guess(resolve(functions_without_inputs.Linear)).args
    assert x.ndim == 2
    assert len({x.shape[0], x.shape[1], weight.shape[0]}) == 3
    assert {t.dtype for t in (x, weight, bias)} == {torch.float64}


def test_jaxtyping_names_become_sizes_that_fit():
    x, w, pick = guess(resolve(functions_without_inputs.Shaped)).args
    assert x.shape[1] == w.shape[0]
    assert pick.shape == (x.shape[0],)
    assert pick.dtype == torch.int64
    assert not pick.requires_grad


def test_strings_are_taken_from_what_the_body_compares_with():
    assert guess(resolve(functions_without_inputs.Reduce)).args[2] in ("add", "average")


def test_the_rank_the_body_unpacks_is_respected():
    found = {clue.name: clue for clue in clues(resolve(functions_without_inputs.Attention))}
    assert found["q"].ndim == 4
    assert guess(resolve(functions_without_inputs.Attention)).args[0].ndim == 4


def test_no_gradient_is_asked_for_where_backward_returns_none():
    found = {clue.name: clue.gradient for clue in clues(resolve(functions_without_inputs.Reduce))}
    assert found == {"x": True, "dim": False, "mode": False}


def test_the_report_says_guessed_and_gives_code_that_runs():
    report = gs.check(functions_without_inputs.Linear, level="quick")
    subject = report.subjects[0]
    assert (subject.verdict, subject.inputs_from) == ("verified", "guessed")
    assert any(
        "inputs were guessed; keep or correct them, or let --write-inputs write them: gradsmith_inputs = " in note
        for note in report.notes
    )
    again = eval(subject.inputs_code)
    assert gs.check(functions_without_inputs.Linear, *again, level="quick").ok


def test_nothing_works_says_what_was_tried_and_what_to_write():
    subject = gs.check(functions_without_inputs.Hopeless, level="quick").subjects[0]
    assert (subject.verdict, subject.inputs_from) == ("unverified", "none")
    assert "guesses tried" in subject.reason
    assert 'write gradsmith_inputs = {"Hopeless": lambda: (x, config,)}' in subject.reason


def test_modules_are_built_and_get_a_time_dimension():
    report = gs.check(functions_without_inputs.Cell, level="quick")
    assert report.subjects[0].verdict == "verified"
    code = report.subjects[0].inputs_code
    assert code.startswith("(Cell(input_size=4, hidden_size=6), torch.randn(2, 12, 4")


def test_declared_module_classes_start_with_an_instance(monkeypatch):
    declared = {"Cell": lambda: (functions_without_inputs.Cell(3, 5), torch.randn(2, 4, 3, dtype=torch.float32))}
    monkeypatch.setattr(functions_without_inputs, "gradsmith_inputs", declared, raising=False)
    subject = gs.check(functions_without_inputs.Cell, level="quick").subjects[0]
    assert (subject.verdict, subject.inputs_from) == ("verified", "declared")


def test_a_declared_example_that_fails_is_the_users_error_with_its_line(monkeypatch):
    declared = {"Linear": lambda: (1 / 0,)}
    monkeypatch.setattr(functions_without_inputs, "gradsmith_inputs", declared, raising=False)
    line = declared["Linear"].__code__.co_firstlineno
    reason = gs.check(functions_without_inputs.Linear, level="quick").subjects[0].reason
    assert reason == f"the declared inputs (line {line}) raise ZeroDivisionError: division by zero"


def test_recorded_inputs_come_before_guessed_ones():
    with gs.record() as tape:
        functions_without_inputs.Linear.apply(torch.randn(2, 3, requires_grad=True), torch.randn(5, 3), None)
    assert gs.check(functions_without_inputs.Linear, level="quick").subjects[0].inputs_from == "recorded"
    del tape


def test_as_many_values_as_the_body_reads():
    assert len(guess(resolve(lenient_functions.FirstOfMany)).args) == 1
    assert gs.check(lenient_functions.FirstOfMany).subjects[0].verdict == "verified"


def test_defaults_without_a_gradient_are_not_passed():
    assert [clue.name for clue in clues(resolve(lenient_functions.RareOption))] == ["x", "weight"]
    assert gs.check(lenient_functions.RareOption).subjects[0].verdict == "verified"


@pytest.mark.parametrize("name", ["index", "perm", "ids", "mask", "weight", "eps"])
def test_every_proposal_can_be_made(name):
    generator = torch.Generator().manual_seed(0)
    for gradient in (True, False, None):
        for proposal in candidates(Clue(name, gradient=gradient), Sizes()):
            for frame in FRAMES:
                made(proposal, frame, torch.float64, generator)


def test_what_is_kept_on_ctx_is_a_number_first():
    found = guess(resolve(lenient_functions.Root))
    assert isinstance(found.args[1], float)


@pytest.mark.parametrize("function", [lenient_functions.Bilinear, lenient_functions.PerChannel])
def test_shapes_that_the_code_writes_down(function):
    found = guess(resolve(function))
    assert found.attempts <= 5
    assert gs.check(function).subjects[0].verdict == "verified"


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


class OneStep(torch.autograd.Function):
    """Divides by one number; forward would take as many numbers as there are data."""

    @staticmethod
    def forward(ctx, value, scale):
        ctx.save_for_backward(value, scale)
        return value / scale

    @staticmethod
    def backward(ctx, grad_output):
        value, scale = ctx.saved_tensors
        return grad_output / scale, -(grad_output * value / scale**2).sum().unsqueeze(0)


def test_a_summed_gradient_is_of_one_number():
    (subject,) = gs.check(OneStep).subjects
    assert subject.verdict == "verified", subject.reason


X = torch.randn(3, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(1)).requires_grad_()


class Modulus(torch.autograd.Function):
    """Only meant for complex numbers, which its backward alone gives away."""

    @staticmethod
    def forward(ctx, z):
        ctx.save_for_backward(z)
        return z.abs()

    @staticmethod
    def backward(ctx, grad_output):
        (z,) = ctx.saved_tensors
        return grad_output * torch.exp(1j * z.angle())


def test_numbers_that_backward_wants_to_be_complex_are_guessed_so():
    report = gs.check(Modulus)
    assert (report.subjects[0].verdict, "complex128" in report.subjects[0].inputs_code) == ("verified", True)


class Patches(torch.autograd.Function):
    """forward takes an image without a batch as well; backward does not."""

    @staticmethod
    def forward(ctx, x, size, stride):
        ctx.seen = x.shape[2:], size, stride
        return torch.nn.functional.unfold(x, size, stride=stride)

    @staticmethod
    def backward(ctx, grad_output):
        shape, size, stride = ctx.seen
        return torch.nn.functional.fold(grad_output, shape, size, stride=stride), None, None


def test_another_shape_is_tried_where_only_backward_raises():
    report = gs.check(Patches)
    assert report.subjects[0].verdict == "verified"


class Recurrence(torch.autograd.Function):
    # a is NxT, x is NxTxD

    @staticmethod
    def forward(ctx, a, x):
        ctx.save_for_backward(a, x)
        return a[:, :, None] * x

    @staticmethod
    def backward(ctx, grad_output):
        a, x = ctx.saved_tensors
        n, t, d = grad_output.shape
        return (grad_output * x).sum(-1), grad_output * a.view(n, t, 1).expand(n, t, d)


def test_shapes_in_a_sentence_are_read():
    report = gs.check(Recurrence)
    assert report.subjects[0].verdict == "verified"
    assert "randn(3, 4, 5" in report.subjects[0].inputs_code


class Forgotten(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, slope=2.0):
        ctx.slope = slope
        return x * slope

    @staticmethod
    def backward(ctx, grad_output):
        return scaled(grad_output, ctx.slope)


def scaled(grad, slope):
    return grad * slope


def test_a_default_that_nobody_passes_is_not_passed():
    report = gs.check(Forgotten)
    assert report.subjects[0].verdict == "verified"
    assert gs.check(Forgotten, X, 2.0).subjects[0].verdict == "refuted"


def test_dimensions_that_the_body_reads_are_there_at_once():
    (spikes, *_) = clues(resolve(functions_without_inputs.LeakyOverTime))
    assert spikes.least == 5
    found = guess(resolve(functions_without_inputs.LeakyOverTime))
    assert found.works and not found.trouble
    assert found.args[0].ndim == 5
    assert found.attempts < 300


def test_an_optional_object_that_nothing_here_could_build_is_left_out():
    found = guess(resolve(functions_without_inputs.Reported))
    assert found.works and found.args[1] is None
    assert found.attempts == 1
