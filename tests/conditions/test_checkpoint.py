"""What torch.utils.checkpoint can be held to: the reentrant kind knows of no tensors in lists or keywords."""

from __future__ import annotations

import pytest
import torch

import gradsmith as gs
from gradsmith.lab import Lab, Settings, resolve
from gradsmith.lab.conditions.environment import checkpoint_non_reentrant, checkpoint_reentrant
from gradsmith.lab.subject.arguments import Arguments


def mean_of(sequences: list[torch.Tensor], scale: float) -> torch.Tensor:
    return torch.stack([s.mean(0) * scale for s in sequences])


def product(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return x * w


def randn(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64, requires_grad=True)


def lab_of(function, args, kwargs) -> Lab:
    return Lab(resolve(function), Arguments.of(args, kwargs), Settings(), "standard")


@pytest.mark.parametrize(
    ("function", "args", "kwargs"),
    [(mean_of, ([randn(4, 3), randn(2, 3)], 2.0), {}), (product, (randn(3),), {"w": randn(3)})],
    ids=["a list", "a keyword"],
)
def test_tensors_that_are_no_arguments_themselves_are_not_tried_with_the_reentrant_kind(function, args, kwargs) -> None:
    lab = lab_of(function, args, kwargs)
    assert checkpoint_non_reentrant(lab).state == "works"
    assert checkpoint_reentrant(lab).state == "not tried"


def test_direct_arguments_are_tried_with_both_kinds() -> None:
    lab = lab_of(product, (randn(3), randn(3)), {})
    assert checkpoint_non_reentrant(lab).state == checkpoint_reentrant(lab).state == "works"


def test_a_function_of_a_list_is_verified() -> None:
    report = gs.check(mean_of, [randn(4, 3), randn(2, 3)], 2.0, select=["checkpoint-mismatch"])
    assert not report.findings
