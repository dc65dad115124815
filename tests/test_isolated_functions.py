"""`gs.check(..., isolate=True)` with functions beside the subject: they travel by name, or are refused in words."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import Tensor

import gradsmith as gs

SUBJECTS = """
import torch


class Spike(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return (x > 0).to(x.dtype)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        s = torch.sigmoid(x)
        return grad_output * s * (1 - s)


class OfSumTwo(torch.autograd.Function):
    '''x times its sum, for x whose sum is 2.'''

    @staticmethod
    def forward(ctx, x):
        return x.detach() * x.detach().sum()

    @staticmethod
    def backward(ctx, grad_output):
        return 2 * grad_output


class Noisy(torch.autograd.Function):
    '''sin(x) with an error of its own, in which the slope is hard to see.'''

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        y = x.detach().sin()
        return y + 1e-3 * (1e6 * y).sin()

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * x.cos()


class Steep:
    @staticmethod
    def slope(x):
        return torch.sigmoid(4 * x)


def gentle(x):
    return torch.sigmoid(x)


def onto(x):
    return x - x.mean() + 2 / x.numel()
"""


def x() -> Tensor:
    drawn = torch.randn(6, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
    return (drawn - drawn.mean() + 2 / 6).requires_grad_()


def both(subject: Any, *inputs: Any, **options: Any) -> tuple[gs.Report, gs.Report]:
    return tuple(gs.check(subject, *inputs, level="quick", isolate=i, **options) for i in (False, True))  # type: ignore[return-value]


def outcome(report: gs.Report) -> tuple[str, list[str]]:
    return report.subjects[0].verdict, sorted(f.rule for f in report.findings)


def test_the_function_a_surrogate_is_like_travels(load: Callable[[str], ModuleType]) -> None:
    module = load(SUBJECTS)
    for like, verdict in ((module.gentle, "verified"), (module.Steep.slope, "refuted"), (torch.sigmoid, "verified")):
        here, there = both(module.Spike, x(), gradient="surrogate", like=like)
        assert outcome(here) == outcome(there)
        assert there.subjects[0].verdict == verdict


def test_the_projection_travels(load: Callable[[str], ModuleType]) -> None:
    module = load(SUBJECTS)
    here, there = both(module.OfSumTwo, x(), project=module.onto)
    assert outcome(here) == outcome(there)
    assert there.subjects[0].verdict == "verified"
    assert gs.check(module.OfSumTwo, x(), level="quick", isolate=True).subjects[0].verdict == "refuted"


def test_the_reference_travels(load: Callable[[str], ModuleType]) -> None:
    module = load(SUBJECTS)
    here, there = both(module.Noisy, x(), reference=torch.sin)
    assert outcome(here) == outcome(there)
    assert there.subjects[0].verdict == "unverified"  # differences cannot see it, the reference does not object
    assert gs.check(module.Noisy, x(), level="quick", isolate=True).subjects[0].verdict == "refuted"


def test_a_function_of_another_file_travels(load: Callable[[str], ModuleType]) -> None:
    module, other = load(SUBJECTS), load("import torch\n\ndef twice(x):\n    return 2 * torch.sigmoid(x)\n")
    here, there = both(module.Spike, x(), gradient="surrogate", like=other.twice)
    assert outcome(here) == outcome(there)
    assert "surrogate-slope" in outcome(there)[1]


def _closure() -> Callable[[Tensor], Tensor]:
    def inner(x: Tensor) -> Tensor:
        return torch.sigmoid(x)

    return inner


REFUSED = [
    (lambda x: torch.sigmoid(x), "a lambda"),
    (_closure(), "defined in a function"),
    (functools.partial(torch.mul, 2), "a partial"),
    (torch.nn.Sigmoid(), "an object of type Sigmoid"),
    (torch.nn.Sigmoid().forward, "which its module does not have under that name"),
]


@pytest.mark.parametrize(("function", "said"), REFUSED, ids=lambda v: v if isinstance(v, str) else "")
@pytest.mark.parametrize("option", ["reference", "project", "like"])
def test_a_function_without_a_name_is_refused(
    function: Any, said: str, option: str, load: Callable[[str], ModuleType]
) -> None:
    with pytest.raises(gs.GradsmithError) as raised:
        gs.check(load(SUBJECTS).Spike, x(), isolate=True, **{option: function})
    assert f"{option}= is " in str(raised.value)
    assert said in str(raised.value)
    assert f"`def {option}(...)`" in str(raised.value)


def test_a_function_of_a_notebook_is_refused(
    load: Callable[[str], ModuleType], monkeypatch: pytest.MonkeyPatch
) -> None:
    notebook = ModuleType("__main__")
    exec("def like(x):\n    return x.sigmoid()\n", vars(notebook))
    monkeypatch.setitem(sys.modules, "__main__", notebook)
    with pytest.raises(gs.GradsmithError, match="defined in a notebook or at a prompt"):
        gs.check(load(SUBJECTS).Spike, x(), isolate=True, like=vars(notebook)["like"])


def test_inputs_that_cannot_travel_are_refused(load: Callable[[str], ModuleType], tmp_path: Path) -> None:
    with pytest.raises(gs.GradsmithError, match="only tensors and plain values travel"):
        gs.check(load(SUBJECTS).Spike, x(), torch.nn.Linear(2, 2), isolate=True)


def test_a_kind_that_nobody_knows_is_said_and_not_a_crash(load: Callable[[str], ModuleType]) -> None:
    declared = "class Spike(torch.autograd.Function):  # gradsmith: surrogate[ste]"
    text = SUBJECTS.replace("class Spike(torch.autograd.Function):", declared)
    subject = gs.check(load(text).Spike, x(), isolate=True, level="quick").subjects[0]
    assert subject.verdict == "unverified"
    assert "no surrogate is called 'ste'" in subject.reason
