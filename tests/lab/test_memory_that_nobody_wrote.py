"""What torch.empty hands out may hold NaN by accident, often gradsmith's own: that hides nothing, and accuses nobody."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import torch

import gradsmith as gs
from gradsmith.catalog import rules

NAME = "uninitialised-memory"
ALWAYS_NAN = rules()[NAME].good.replace("2 * grad_output", "grad_output * float('nan')")


def _found(module: ModuleType) -> set[str]:
    """The rules that fire where freed memory of the size of the gradient is full of NaN."""
    inputs = module.gradsmith_inputs["EvenRows"]()
    kept = [torch.full((inputs[0].numel(),), torch.nan, dtype=torch.float64) for _ in range(2000)]
    del kept
    report = gs.check(module.EvenRows, *inputs, select=[NAME])
    return {f.rule for f in report.findings}


def test_nan_that_was_left_in_freed_memory_does_not_hide_it(load: Callable[[str], ModuleType]) -> None:
    assert _found(load(rules()[NAME].bad)) == {NAME}


def test_a_gradient_that_is_nan_whatever_memory_holds_is_another_defect(load: Callable[[str], ModuleType]) -> None:
    assert _found(load(ALWAYS_NAN)) == set()
