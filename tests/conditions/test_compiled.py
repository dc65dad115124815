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


LOOP = """
import torch
from torch.nn import functional


class Loop(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        for _ in range(300):
            x = {step}
        return x

    @staticmethod
    def backward(ctx, grad_output):
        for _ in range(300):
            grad_output = grad_output * 1.001
        return grad_output


gradsmith_inputs = {{"Loop": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}}
"""


def test_a_long_loop_of_operators_does_not_go_into_the_compiler(check_source: Callable[..., Report]) -> None:
    # No Python function is called in it: the operators alone tell.
    conditions = check_source(LOOP.format(step="x * 1.001 + 0.5")).subjects[0].conditions
    state, _, reason = conditions["compile"].partition(": ")
    assert state == "not tried"
    assert "operators in one run, which dynamo would unroll one by one" in reason


def test_a_loop_within_torchs_own_python_is_counted(check_source: Callable[..., Report]) -> None:
    layers = """
import torch
from torch import nn


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, layers):
        return layers(x)

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output, None


gradsmith_inputs = {"Scale": lambda: (
    torch.randn(4, 3, dtype=torch.float64, requires_grad=True),
    nn.Sequential(*(nn.Hardtanh(-1e9, 1e9) for _ in range(600))),
)}
"""
    report = check_source(layers)
    assert "operators in one run" in report.subjects[0].conditions["compile"], report
