"""The identity that passes on only the largest entries of the gradient.

    y  = x
    dx = g at its k entries of largest magnitude, 0 elsewhere         (k = share * n, at least 1)

Teaches: topk picks the indices, index_copy puts the values back without writing into grad_output; reshape, not view,
    because grad_output may have any strides.
When not to use it: for communication, compress after backward and add the error back (error feedback), or it is lost.
"""

from typing import Any

import torch
from torch import Tensor

TEACHES = "keep the k largest gradient entries, out of place and for any strides"
SECOND_ORDER = False
COMPILES = True


class SparsifyGradient(torch.autograd.Function):  # gradsmith: surrogate[sparsify]
    @staticmethod
    def forward(ctx: Any, x: Tensor, share: float) -> Tensor:
        ctx.share = share
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, None]:
        flat = grad_output.reshape(-1)
        k = min(max(int(ctx.share * flat.numel()), 1), flat.numel())
        largest = flat.abs().topk(k).indices
        kept = torch.zeros_like(flat).index_copy(0, largest, flat[largest])
        return kept.reshape(grad_output.shape), None


gradsmith_inputs = {"SparsifyGradient": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True), 0.25)}
