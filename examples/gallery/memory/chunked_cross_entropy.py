"""The last layer and its loss in chunks of rows; gs.ops.linear_cross_entropy has it with all options.

    loss = mean of logsumexp(z) - z_y,   z = x W^T
    dz   = (softmax(z) - onehot(y)) / N        dx = dz W        dW = dz^T x

Teaches: with one number as the result, backward only scales; so the gradients can be made in forward, while a chunk of
    logits is at hand, and the N x V logits never exist. Its gradient is then a constant to autograd: refuse second order.
When not to use it: with few classes, where the logits are small beside x.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

TEACHES = "a scalar loss may make its gradients in forward, chunk by chunk; backward only scales them"
SECOND_ORDER = False
COMPILES = False
CHUNK = 2


class ChunkedCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, target: Tensor) -> Tensor:
        total, dx, dw = x.new_zeros(()), torch.empty_like(x), torch.zeros_like(weight)
        for start in range(0, len(x), CHUNK):
            rows, chosen = x[start : start + CHUNK], target[start : start + CHUNK, None]
            z = rows @ weight.t()
            lse = z.logsumexp(1, keepdim=True)
            total += (lse - z.gather(1, chosen)).sum()
            dz = (z - lse).exp().scatter_add(1, chosen, z.new_full(chosen.shape, -1)) / len(x)
            dx[start : start + CHUNK] = dz @ weight
            dw += dz.t() @ rows
        ctx.save_for_backward(dx, dw)  # gradsmith: ignore[intermediate-saved]
        return total / len(x)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, Tensor, None]:
        dx, dw = ctx.saved_tensors
        return grad_output * dx, grad_output * dw, None


gradsmith_inputs = {
    "ChunkedCrossEntropy": lambda: (
        torch.randn(5, 3, dtype=torch.float64, requires_grad=True),
        torch.randn(4, 3, dtype=torch.float64, requires_grad=True),
        torch.tensor([0, 3, 1, 1, 2]),
    )
}
