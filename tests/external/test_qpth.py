"""qpth, a released solver of quadratic programs, where it is installed (`pip install qpth`): its gradients are right."""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType
from typing import Any

import pytest
import torch

import gradsmith as gs

pytestmark = [
    pytest.mark.deep,
    pytest.mark.skipif(importlib.util.find_spec("qpth") is None, reason="qpth is not installed"),
]


def _problem(equal: bool) -> tuple[torch.Tensor, ...]:
    """One whose bounds are partly active, with or without equations."""
    generator = torch.Generator().manual_seed(4)

    def randn(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, dtype=torch.float64, generator=generator)

    root = randn(4, 4)
    q, p = root @ root.mT + torch.eye(4, dtype=torch.float64), 2 * randn(4)
    g, h = randn(6, 4), torch.rand(6, dtype=torch.float64, generator=generator) + 0.1
    a, b = (randn(1, 4), 0.1 * randn(1)) if equal else (torch.empty(0, dtype=torch.float64),) * 2
    return q, p, g, h, a, b


def _solver() -> Any:
    if (
        "cvxpy" not in sys.modules and importlib.util.find_spec("cvxpy") is None
    ):  # qpth imports it, and asks it only where it is told to
        sys.modules.setdefault("cvxpy", ModuleType("cvxpy"))
    from qpth.qp import QPFunction  # type: ignore[import-not-found]

    return QPFunction(verbose=-1)


@pytest.mark.parametrize("equal", [False, True])
@pytest.mark.parametrize("wanted", ["p", "h", "p h g"])
def test_a_released_solver_is_accused_of_nothing(equal: bool, wanted: str) -> None:
    solve = _solver()
    names = ("q", "p", "g", "h", "a", "b")
    given = [x.requires_grad_(name in wanted.split()) for name, x in zip(names, _problem(equal))]
    report = gs.check(solve, *given)
    assert [f.message for f in report.findings if f.severity == "error"] == []
    told = [f.message for f in report.findings]
    assert not any("e+0" in message or "as if computed in float32" in message for message in told)
