"""A linear layer whose weight gradient is clipped inside the layer; the input gradient stays exact.

    y  = x W^T
    dx = g W            dW = clamp(g^T x, -limit, limit)

Teaches: clipping the finished gradient is not clipping g: only dW is touched, and the layers below still get the
    exact dx. A clipped gradient is not linear in g, so it is declared a surrogate.
When not to use it: torch.nn.utils.clip_grad_value_ clips all parameters after backward, which is what most people
    want; and with gradient accumulation this layer clips each part, not the sum.
"""

from typing import Any

import torch
from torch import Tensor, nn

TEACHES = "clip the weight gradient only: the layers below still receive the exact one"
SECOND_ORDER = False
COMPILES = True


class ClippedLinear(torch.autograd.Function):  # gradsmith: surrogate[clip]
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, limit: float) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.limit = limit
        return x @ weight.t()

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        x, weight = ctx.saved_tensors
        grad_x = grad_weight = None
        if ctx.needs_input_grad[0]:
            grad_x = grad_output @ weight
        if ctx.needs_input_grad[1]:
            exact = grad_output.reshape(-1, weight.shape[0]).t() @ x.reshape(-1, weight.shape[1])
            grad_weight = exact.clamp(-ctx.limit, ctx.limit)
        return grad_x, grad_weight, None


class ClippedLinearLayer(nn.Module):
    def __init__(self, inputs: int, outputs: int, limit: float = 1.0) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(outputs, inputs) / inputs**0.5)
        self.limit = limit

    def forward(self, x: Tensor) -> Tensor:
        return ClippedLinear.apply(x, self.weight, self.limit)


gradsmith_inputs = {
    "ClippedLinear": lambda: (
        torch.randn(4, 3, dtype=torch.float64, requires_grad=True),
        torch.randn(5, 3, dtype=torch.float64, requires_grad=True),
        0.5,
    )
}
