"""What a declared surrogate is free of, and where it may be declared: lint and check read the same comment."""

from __future__ import annotations

import itertools
import linecache
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
import torch

import gradsmith as gs
from gradsmith.lab.subject.declarations import declaration_of
from gradsmith.lab.subject.target import resolve
from gradsmith.source import FileModel, project

KINDLESS = "# gradsmith: surrogate"
COMMENTS = ["# gradsmith: surrogate[straight-through]", KINDLESS, "# gradsmith: approximate"]

CLASS = """import functools

import torch

def same(cls):
    return cls

{far}

{above}
@same{decorator}
class Round(torch.autograd.Function):{line}
    {body}
    @staticmethod{method}
    def forward(ctx, x):{forward}
        return x.round()

    {between}
    @staticmethod
    def backward(ctx, grad_output):{backward}
        {inside}
        return grad_output
    {end}


class Other(torch.autograd.Function):
    '''Not declared. {docstring}'''

    @staticmethod
    def forward(ctx, x):
        return x.round()

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output
"""
COUNTS = ["above", "decorator", "line", "body", "method", "forward", "between", "backward", "inside", "end"]
PLACES = [*COUNTS, "far", "docstring"]
numbers = itertools.count()


def written(place: str, comment: str) -> str:
    return CLASS.format(**{p: "" if p != place else (comment if p in OWN_LINE else f"  {comment}") for p in PLACES})


OWN_LINE = {"above", "body", "between", "inside", "end", "far", "docstring"}


def linted(text: str, name: str) -> tuple[str, str] | None:
    file = FileModel("ops.py", text)
    functions = project.load([file], [file]).files[0].functions
    found = next(f for f in functions if f.name == name).declaration
    return (found.gradient, found.kind) if found is not None else None


def checked(cls: type) -> tuple[str, str] | None:
    found = declaration_of(resolve(cls))
    if found.approximate:
        return "approximate", ""
    return ("surrogate", found.surrogate.replace("surrogate", "")) if found.surrogate else None


def in_a_cell(text: str) -> dict[str, Any]:
    path = f"/nowhere/ipykernel_7/{next(numbers)}.py"
    linecache.cache[path] = (len(text), None, text.splitlines(True), path)
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(text, path, "exec"), names)
    return names


@pytest.mark.parametrize("comment", COMMENTS)
@pytest.mark.parametrize("place", PLACES)
def test_a_comment_means_the_same_to_lint_and_to_check(
    place: str, comment: str, load: Callable[[str], ModuleType]
) -> None:
    text = written(place, comment)
    for names in (vars(load(text)), in_a_cell(text)):
        for name in ("Round", "Other"):
            assert linted(text, name) == checked(names[name]), name
    gradient, _, kind = comment.removeprefix("# gradsmith: ").rstrip("]").partition("[")
    assert linted(text, "Round") == ((gradient, kind) if place in COUNTS else None)
    assert linted(text, "Other") is None


FAMILY = """import torch
from torch.autograd import Function

class Outer(Function):
    @staticmethod
    def forward(ctx, x):
        return x.round()
    @staticmethod
    def backward(ctx, grad_output):
        return grad_output
    # gradsmith: surrogate[clip]
    class Inner(Function):
        @staticmethod
        def forward(ctx, x):
            return x.round()
        @staticmethod
        def backward(ctx, grad_output):
            return grad_output  # gradsmith: approximate
class Next(Function):
    @staticmethod
    def forward(ctx, x):
        return x.round()
    @staticmethod
    def backward(ctx, grad_output):
        return grad_output
class Base(Next):  # gradsmith: surrogate[scale]
    pass
class Derived(Base):
    pass
"""


def test_a_comment_speaks_for_one_class_and_those_that_derive_from_it(load: Callable[[str], ModuleType]) -> None:
    module = load(FAMILY)
    wanted = {"Outer": None, "Inner": ("surrogate", "clip"), "Next": None, "Base": ("surrogate", "scale")}
    for name, declared in {**wanted, "Derived": ("surrogate", "scale")}.items():
        assert linted(FAMILY, name) == declared, name
        assert checked(module.Outer.Inner if name == "Inner" else getattr(module, name)) == declared, name


OP = """import torch
{above}
@torch.library.custom_op("declared::{name}", mutates_args=())
def {name}(x: torch.Tensor) -> torch.Tensor:
    return x.round()

{backward}
def back(ctx, grad_output):
    return grad_output

{name}.register_autograd(back)
"""


@pytest.mark.parametrize("place", ["above", "backward"])
def test_a_comment_at_a_custom_op_or_at_its_backward_counts(place: str, load: Callable[[str], ModuleType]) -> None:
    name = f"rounded_{place}"
    text = OP.format(**{"above": "", "backward": "", "name": name, place: COMMENTS[0]})
    assert checked(getattr(load(text), name)) == ("surrogate", "straight-through")
    functions = project.load([file := FileModel("ops.py", text)], [file]).files[0].functions
    assert [(f.kind, f.declaration and f.declaration.kind) for f in functions] == [("custom_op", "straight-through")]


def x(*shape: int) -> torch.Tensor:
    drawn = torch.randn(*(shape or (4, 3)), dtype=torch.float64, generator=torch.Generator().manual_seed(7))
    return drawn.requires_grad_()


class Ignores(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sign()

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return 1 / (1 + x.square())


class Clips(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.sign()

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output.clamp(-0.1, 0.1)


class AddsLoss(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, loss):
        ctx.save_for_backward(loss)
        return x.clone()

    @staticmethod
    def backward(ctx, grad_output):
        (loss,) = ctx.saved_tensors
        return grad_output, torch.ones_like(loss)


class WrongSlot(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, threshold):
        return (x > threshold).to(x.dtype)

    @staticmethod
    def backward(ctx, grad_output):
        return None, grad_output


class Swapped(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return (x @ weight).sign()

    @staticmethod
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        return x.t() @ grad_output, grad_output @ weight.t()


class Forgets(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale):
        ctx.save_for_backward(scale)
        return (x / scale).round() * scale

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output, None


class Miscounts(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, bits):
        return x.sign()

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output


class WritesGradOutput(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sign()

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output.mul_(x.abs() < 1)


class Accumulates(torch.autograd.Function):
    calls = 0

    @staticmethod
    def forward(ctx, x):
        return x.sign()

    @classmethod
    def backward(cls, ctx, grad_output):
        cls.calls += 1
        return grad_output * cls.calls


class MemoryOrder(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sign()

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        weights = torch.arange(1, x.numel() + 1, dtype=x.dtype)
        return (torch.as_strided(grad_output, (grad_output.numel(),), (1,)) * weights).view(x.shape)


STAY = [
    (Ignores, (x(),), "ignored-grad-output"),
    (Clips, (x(),), "nonlinear-backward"),
    (AddsLoss, (x(), x(1)), "nonlinear-backward"),
    (Swapped, (x(4, 3), x(3, 5)), "gradient-shape"),
    (Forgets, (x(), x().detach().abs().add(1).requires_grad_()), "none-for-tensor"),
    (Miscounts, (x(), 8), "return-count"),
    (WritesGradOutput, (x(),), "inplace-grad"),
    (Accumulates, (x(),), "not-repeatable"),
    (MemoryOrder, (x(),), "layout-dependent"),
]


@pytest.mark.parametrize(("function", "inputs", "rule"), STAY, ids=lambda v: getattr(v, "__name__", None))
def test_a_surrogate_is_free_of_the_slope_and_of_nothing_else(function: Any, inputs: Any, rule: str) -> None:
    report = gs.check(function, *inputs, gradient="surrogate", level="quick")
    found = {g.rule: g.severity for f in report.findings for g in (f, *f.symptoms)}
    assert found.get(rule) in ("error", "warning")
    assert not found.keys() & {"wrong-gradient", "undeclared-surrogate"}
    exact = gs.check(function, *inputs, level="quick")
    as_exact = {g.rule for f in exact.findings for g in (f, *f.symptoms)}
    assert rule in as_exact


def test_a_gradient_for_an_input_that_needs_none_beside_a_missing_one_is_in_the_wrong_slot() -> None:
    given = x(), x().detach() / 2
    (finding,) = gs.check(WrongSlot, *given, gradient="surrogate").findings
    assert (finding.rule, finding.argument, finding.cause) == ("none-for-tensor", "x", "swapped")
    assert gs.check(WrongSlot, *given).subjects[0].verdict == "verified"  # the derivative of a step is zero


FREE = [
    ("clip", Clips, (x(),)),
    ("aux-loss", AddsLoss, (x(), x(1))),
    ("aux-loss", Ignores, (x(),)),
    ("stop", Forgets, (x(), x().detach().abs().add(1).requires_grad_())),
]


@pytest.mark.parametrize(("kind", "function", "inputs"), FREE)
def test_the_kind_says_what_else_is_meant(kind: str, function: Any, inputs: Any) -> None:
    declared = gs.surrogate(kind)(type(function.__name__, (function,), {}))
    report = gs.check(declared, *inputs, level="quick")
    assert report.subjects[0].verdict == "verified", report.findings


class Reverses(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, grad_output):
        return -grad_output


@pytest.mark.parametrize("kind", ["reversal", "reverse"])
def test_a_reversal_has_two_names(kind: str) -> None:
    assert gs.check(gs.surrogate(kind)(type("Reversed", (Reverses,), {})), x()).subjects[0].verdict == "verified"


def test_swapped_shapes_are_said_to_be_swapped() -> None:
    report = gs.check(Swapped, x(4, 3), x(3, 5), gradient="surrogate")
    found = next(f for f in report.findings if f.rule == "gradient-shape")
    assert "'x' and 'weight' have each other's shapes" in str(found.advice)


LINTED = """import torch

class Blind(torch.autograd.Function):  # gradsmith: {declared}
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sign()

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return torch.exp(-x.abs())
"""


@pytest.mark.parametrize("declared", ["surrogate", "surrogate[straight-through]", "surrogate[aux-loss]", "approximate"])
def test_lint_waives_what_check_waives(declared: str) -> None:
    rules = {f.rule for f in gs.lint_source(LINTED.format(declared=declared)).findings}
    assert ("ignored-grad-output" in rules) == ("aux-loss" not in declared)


def test_what_a_kind_waives_is_not_reported_by_the_source_lens_either(load: Callable[[str], ModuleType]) -> None:
    blind = load(LINTED.replace("# gradsmith: {declared}", "")).Blind
    assert "ignored-grad-output" in {f.rule for f in gs.check(blind, x(), level="quick").findings}
    assert gs.check(gs.surrogate("aux-loss")(blind), x(), level="quick").findings == []


def test_a_claimed_slope_does_not_fit_a_missing_gradient() -> None:
    def like(x: torch.Tensor, threshold: torch.Tensor) -> torch.Tensor:
        return torch.sigmoid(x - threshold)

    class HalfTrained(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, threshold):
            ctx.save_for_backward(x, threshold)
            return (x > threshold).to(x.dtype)

        @staticmethod
        def backward(ctx, grad_output):
            s = torch.sigmoid(torch.sub(*ctx.saved_tensors))
            return grad_output * s * (1 - s), None

    report = gs.check(HalfTrained, x(), x().detach().div(2).requires_grad_(), gradient="surrogate", like=like)
    assert [f.argument for f in report.findings if f.rule == "surrogate-slope"] == ["threshold"]
