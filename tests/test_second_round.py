"""Defects of the second measured round that must not come back, as far as no other test holds them."""

from __future__ import annotations

from typing import Any

import torch
from torch.autograd import Function

import gradsmith as gs

weight = torch.tensor([2.0, 3.0, 4.0], dtype=torch.float64, requires_grad=True)


def scaled_by_the_global(x: torch.Tensor) -> torch.Tensor:
    return x * weight


class Calls(Function):
    """Calls a function that reads a tensor of its module, which is an input, too."""

    @staticmethod
    def forward(ctx: Any, run: Any, x: torch.Tensor, own: torch.Tensor) -> torch.Tensor:
        ctx.run = run
        ctx.save_for_backward(x, own)
        return run(x)

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        x, own = ctx.saved_tensors
        return None, grad * own, grad * x


def errors(report: gs.Report) -> list[str]:
    return [f.rule for f in report.findings if f.severity == "error"]


def test_a_function_argument_may_read_a_global_tensor_that_is_an_input() -> None:
    x = torch.randn(3, dtype=torch.float64, requires_grad=True)
    assert not errors(gs.check(Calls, scaled_by_the_global, x, weight))


def test_exchanged_gradients_are_not_called_a_factor() -> None:
    class Product(Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            ctx.save_for_backward(x, y)
            return x * y

        @staticmethod
        def backward(ctx: Any, grad: torch.Tensor) -> Any:
            x, y = ctx.saved_tensors
            return grad * x, grad * y

    inputs = [torch.full((3, 4), v, dtype=torch.float64, requires_grad=True) for v in (1.7, 0.4)]
    causes = {f.cause for f in gs.check(Product, *inputs).findings if f.rule == "wrong-gradient"}
    assert causes == {"swapped"}
