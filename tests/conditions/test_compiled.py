"""torch.compile against eager mode, also with one tensor in two places."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gradsmith.findings import Report

PRODUCT = """
import torch


class Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        {remember}
        return x * y

    @staticmethod
    def backward(ctx, grad_output):
        x, y = ctx.saved_tensors
        return grad_output * y, {gradient}


def example():
    x = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    return x, torch.randn({shape}, dtype=torch.float64, requires_grad=True)


gradsmith_inputs = {{"Product": example}}
"""
COLUMN = "compile, one tensor twice"


def checked(
    check_source: Callable[..., Report],
    gradient: str = "grad_output * x",
    shape: str = "4, 3",
    remember: str = "pass",
) -> Report:
    return check_source(PRODUCT.format(gradient=gradient, shape=shape, remember=remember))


def test_one_tensor_in_two_places_has_a_column(check_source: Callable[..., Report]) -> None:
    report = checked(check_source)
    assert report.subjects[0].conditions[COLUMN] == "works"
    assert report.ok


def test_inputs_of_different_shapes_are_not_made_one(check_source: Callable[..., Report]) -> None:
    report = checked(check_source, "(grad_output * x).sum(-1, keepdim=True)", "4, 1")
    assert report.subjects[0].conditions[COLUMN] == "not tried: no two inputs are alike"


def test_a_backward_that_asks_whether_they_are_one_differs(check_source: Callable[..., Report]) -> None:
    # Right in eager mode either way; only a compiled graph, in which the twins were dropped, takes the branch.
    remember = "ctx.halved = torch.compiler.is_compiling() and x is y"
    report = checked(check_source, "grad_output * x * (0.5 if ctx.halved else 1)", remember=remember)
    (finding,) = [f for f in report.findings if f.severity == "error"]
    assert finding.rule == "compile-mismatch"
    assert "one tensor passed twice" in finding.message
    assert report.subjects[0].conditions["compile"] == "works"
    assert finding.reproduce is not None
    with pytest.raises(AssertionError, match="compiled differs from eager"):
        exec(finding.reproduce.snippet, {})
