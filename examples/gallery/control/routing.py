"""Hard routing to the best expert, trained through the softmax.

    y  = one-hot of argmax(logits)
    p  = softmax(logits)                dlogits = p * (g - sum of g * p)

Teaches: the choice itself has no slope; the softmax's Jacobian stands in for it. It is recomputed from the saved
    input, and needs no n x n matrix: diag(p) - p p^T times g is two element-wise lines.
When not to use it: torch.nn.functional.gumbel_softmax(hard=True) adds the sampling most routers want as well.
"""

from typing import Any

import torch
from torch import Tensor

TEACHES = "choose hard, learn soft: the Jacobian of softmax in place of that of argmax, without building it"
SECOND_ORDER = False
COMPILES = True


class HardRoute(torch.autograd.Function):  # gradsmith: surrogate[routing]
    @staticmethod
    def forward(ctx: Any, logits: Tensor) -> Tensor:
        ctx.save_for_backward(logits)
        best = logits.argmax(-1, keepdim=True)
        return torch.zeros_like(logits).scatter(-1, best, 1)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Tensor:
        (logits,) = ctx.saved_tensors
        p = logits.softmax(-1)
        return p * (grad_output - (grad_output * p).sum(-1, keepdim=True))


gradsmith_inputs = {"HardRoute": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
