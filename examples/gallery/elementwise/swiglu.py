"""The gated product of SwiGLU; gs.ops.swiglu has it in C.

    s  = sigmoid(a)                    y  = a * s * b
    da = g * b * s * (1 + a * (1 - s))         db = g * a * s

Teaches: with two factors, each gradient needs the other one; what both need (s) is cheap, so it is made again from the
    inputs instead of saved. Written out in torch, silu(a) is saved as well: three tensors instead of two.
When not to use it: inside torch.compile, which fuses the plain formula and saves the same two tensors.
"""

from typing import Any

import torch
from torch import Tensor

TEACHES = "two factors: save both, recompute what both gradients need, skip the one that is not needed"
SECOND_ORDER = True
COMPILES = True


class SwiGLU(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, gate: Tensor, up: Tensor) -> Tensor:
        ctx.save_for_backward(gate, up)
        return gate * torch.sigmoid(gate) * up

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor | None, Tensor | None]:
        gate, up = ctx.saved_tensors
        s = torch.sigmoid(gate)
        d_gate = d_up = None
        if ctx.needs_input_grad[0]:
            d_gate = grad_output * up * s * (1 + gate * (1 - s))
        if ctx.needs_input_grad[1]:
            d_up = grad_output * gate * s
        return d_gate, d_up


gradsmith_inputs = {
    "SwiGLU": lambda: tuple(torch.randn(4, 3, dtype=torch.float64, requires_grad=True) for _ in range(2)),
}
