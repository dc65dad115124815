"""Built-in, differentiable twice: torch.nn.functional.softplus. A Function that refuses a second backward in words.

    y  = log(1 + exp(x))
    dx = g * s                  (s = sigmoid(x), saved by forward: a constant to autograd)

Teaches: once_differentiable raises only where grad_output itself carries a graph. In the usual autograd.grad(y.sum(),
    x, create_graph=True) it does not, and the second derivative is a silent constant. Grad mode is on inside backward
    exactly when somebody asked for create_graph: that is the reliable test, and the place for a sentence.
When not to use it: where backward can be written with saved inputs and outputs, do that, and second order just works.
"""

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

TEACHES = "refuse create_graph with an error: once_differentiable alone stays silent when grad_output has no graph"
BUILTIN = "torch.nn.functional.softplus"
SECOND_ORDER = False
COMPILES = False


def refuse_second_backward(remedy: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorates a backward: with create_graph=True it raises, and tells the remedy."""

    def decorate(backward: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(backward)
        def checked(ctx: Any, *grad_outputs: Tensor) -> Any:
            if torch.is_grad_enabled():
                raise RuntimeError(f"this Function can be differentiated only once: {remedy}")
            return backward(ctx, *grad_outputs)

        return checked

    return decorate


class SoftplusOnce(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(torch.sigmoid(x))
        return F.softplus(x)

    @staticmethod
    @refuse_second_backward("drop create_graph=True, or use torch.nn.functional.softplus")
    @once_differentiable
    def backward(ctx: Any, grad_output: Tensor) -> Tensor:
        (s,) = ctx.saved_tensors
        return grad_output * s


gradsmith_inputs = {"SoftplusOnce": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
