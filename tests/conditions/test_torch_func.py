"""torch.func.grad, jacrev and vmap against plain autograd."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import gradsmith as gs
from gradsmith.findings import Report

SQUARE = """
import torch


class Square(torch.autograd.Function):
    generate_vmap_rule = {rule}

    @staticmethod
    def forward(x):
        return x * x

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return {gradient}


gradsmith_inputs = {{"Square": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}}
"""
RIGHT = "2 * grad_output * x"
# Inside a transform tensors are wrapped, and a wrapped tensor takes the other branch.
ANOTHER = f"{RIGHT} * (1.5 if torch._C._functorch.is_batchedtensor(grad_output) else 1)"


def checked(check_source: Callable[..., Report], gradient: str = RIGHT, rule: bool = False) -> Report:
    return check_source(SQUARE.format(gradient=gradient, rule=rule))


def test_jacrev_has_a_column(check_source: Callable[..., Report]) -> None:
    report = checked(check_source)
    assert report.subjects[0].conditions["jacrev"] == "works"
    assert report.subjects[0].conditions["func.grad"] == "works"


def test_a_backward_that_changes_under_vmap_is_named(check_source: Callable[..., Report]) -> None:
    report = checked(check_source, ANOTHER)
    (finding,) = [f for f in report.findings if f.severity == "error"]
    assert finding.rule == "vmap-mismatch"
    assert "torch.func.jacrev" in finding.message
    assert finding.reproduce is not None
    with pytest.raises(AssertionError, match="jacrev gives another gradient"):
        exec(finding.reproduce.snippet, {})
    assert report.subjects[0].conditions["jacrev"].startswith("fails: a different result")
    assert report.subjects[0].conditions["func.grad"] == "works"


def test_what_torch_func_refuses_is_no_finding(check_source: Callable[..., Report]) -> None:
    report = checked(check_source, f"{RIGHT} if float(grad_output.sum()) else grad_output")
    assert report.subjects[0].conditions["jacrev"].startswith("not supported")
    assert report.ok


class OwnBatching(torch.autograd.Function):
    """Its vmap is right only where every input is batched, and in front."""

    @staticmethod
    def forward(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x * y

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[torch.Tensor, torch.Tensor], output: torch.Tensor) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, grad_output: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        x, y = ctx.saved_tensors
        return grad_output * y, grad_output * x

    @staticmethod
    def vmap(info: Any, in_dims: Any, x: torch.Tensor, y: torch.Tensor) -> Any:
        return OwnBatching.apply(x, y), 0


def test_a_vmap_that_ignores_in_dims_is_named() -> None:
    inputs = [torch.randn(4, 5, dtype=torch.float64, requires_grad=True) for _ in range(2)]
    errors = gs.check(OwnBatching, *inputs, select=["vmap-mismatch"]).errors
    assert [f.rule for f in errors] == ["vmap-mismatch"]
