"""What is said about second derivatives: silence where they are right, words where a wrong number comes out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.autograd.function import once_differentiable

import gradsmith as gs


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_output: torch.Tensor) -> torch.Tensor:
        (x,) = ctx.saved_tensors
        return grad_output * 3 * x**2


class Thrice(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return 3 * x

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_output: torch.Tensor) -> torch.Tensor:
        return 3 * grad_output


def severities(function: type[torch.autograd.Function], **options: Any) -> list[str]:
    x = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    return [f.severity for f in gs.check(function, x, **options).findings if f.rule == "wrong-second-order"]


def test_the_silent_constant_is_real() -> None:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    (gradient,) = torch.autograd.grad(Cube.apply(x).sum(), x, create_graph=True)
    (second,) = torch.autograd.grad((x * gradient).sum(), x)
    assert second.tolist() == [3.0, 12.0]  # 9 x**2 would be [9, 36]


def test_a_silent_constant_is_remarked_upon_and_an_error_where_second_order_is_asked_for() -> None:
    assert severities(Cube) == ["info"]
    assert severities(Cube, second_order=True) == ["error"]


def test_a_gradient_that_is_a_constant_is_rightly_taken_for_one() -> None:
    assert severities(Thrice) == []


@pytest.mark.parametrize("rule", ["compiled-func-grad", "custom-op-func-grad"])
def test_defects_of_pytorch_are_told_with_thread_and_versions(
    rule: str, check_source: Callable[..., gs.Report]
) -> None:
    from gradsmith.catalog import rules
    from gradsmith.report import render

    report = check_source(rules()[rule].bad, level="standard")
    text = render(report, "full", verbose=True)
    assert "a defect of pytorch, not of your code" in text
    assert "see: https://github.com/pytorch/pytorch/issues/" in text and "(torch 2." in text
    assert [s.inputs_from for s in report.subjects] == ["declared"]


class WithoutGraph(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx: Any, grad_output: torch.Tensor) -> torch.Tensor:
        (x,) = ctx.saved_tensors
        with torch.no_grad():
            return grad_output * 3 * x**2


class ThroughNumPy(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx: Any, grad_output: torch.Tensor) -> torch.Tensor:
        (x,) = ctx.saved_tensors
        return torch.from_numpy(grad_output.detach().numpy() * 3 * x.detach().numpy() ** 2)


class Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x, y)
        return x * y

    @staticmethod
    def backward(ctx: Any, grad_output: torch.Tensor) -> Any:
        x, y = ctx.saved_tensors
        return grad_output * y, (grad_output * x).detach()


class Step(torch.autograd.Function):
    """Its gradient is zero, and so are all others: there is nothing to have a graph of."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return (x > 0).to(x.dtype)

    @staticmethod
    def backward(ctx: Any, grad_output: torch.Tensor) -> torch.Tensor:
        return torch.zeros_like(grad_output).detach()


class NotANumberTwice(torch.autograd.Function):
    """The term is 0, and so is its derivative; autograd multiplies 0 by infinity."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        return x**2

    @staticmethod
    def backward(ctx: Any, grad_output: torch.Tensor) -> torch.Tensor:
        (x,) = ctx.saved_tensors
        return grad_output * (2 * x + (x - x).abs().sqrt())


def demanded(function: type[torch.autograd.Function], inputs: int = 1) -> gs.Report:
    tensors = [torch.randn(4, 3, dtype=torch.float64, requires_grad=True) for _ in range(inputs)]
    return gs.check(function, *tensors, second_order=True)


@pytest.mark.parametrize(
    ("function", "inputs", "words"),
    [
        (WithoutGraph, 1, "no second derivative: the gradient has no graph"),
        (ThroughNumPy, 1, "no second derivative: the gradient has no graph"),
        (Product, 2, "no second derivative: the gradient of 'y' has no graph"),
        (NotANumberTwice, 1, "autograd through backward gives nan"),
    ],
)
def test_a_second_derivative_that_is_not_there_is_refuted_where_it_is_asked_for(
    function: type[torch.autograd.Function], inputs: int, words: str
) -> None:
    report = demanded(function, inputs)
    assert report.subjects[0].verdict == "refuted"
    assert any(words in f.message for finding in report.errors for f in (finding, *finding.symptoms)), report


def test_without_being_asked_for_a_missing_graph_refutes_nothing() -> None:
    assert severities(WithoutGraph) == []
    assert severities(NotANumberTwice) == ["warning"]


def test_a_gradient_of_zero_needs_no_graph() -> None:
    assert "wrong-second-order" not in {f.rule for f in demanded(Step).findings}
