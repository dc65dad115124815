"""Built-in: torch.nn.functional.dropout. Dropout that keeps one bit per element; gs.ops.dropout has it in C.

    y  = x / (1 - p) where the bit is set, else 0
    dx = g / (1 - p) where the bit is set, else 0

Teaches: randomness belongs into forward; backward must use the very mask that was drawn, so the mask is saved, never drawn
    again. Saved as a float it costs as much as x; as bits it costs 1/32. With x and y at hand nothing else is needed.
When not to use it: inside torch.compile, which draws the mask again from its seed and saves nothing at all.
"""

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

TEACHES = "draw in forward, keep the mask as bits, and use that very mask in backward"
BUILTIN = "torch.nn.functional.dropout"
SECOND_ORDER = True
COMPILES = True


def pack(mask: Tensor) -> Tensor:
    """Eight bools per byte, lowest bit first; the last byte is filled up with zeros."""
    eights = F.pad(mask.reshape(-1).to(torch.uint8), (0, -mask.numel() % 8)).reshape(-1, 8)
    return (eights << torch.arange(8, dtype=torch.uint8, device=mask.device)).sum(1, dtype=torch.uint8)


def selected(x: Tensor, bits: Tensor, scale: float) -> Tensor:
    """x * scale where the bit is set, else 0."""
    ones = bits.unsqueeze(1) >> torch.arange(8, dtype=torch.uint8, device=bits.device) & 1
    return torch.where(ones.reshape(-1)[: x.numel()].reshape(x.shape).to(torch.bool), x * scale, 0)


class BitDropout(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, drawn: Tensor, p: float) -> Tensor:
        bits = pack(drawn >= p)
        ctx.save_for_backward(bits)
        ctx.scale = 1 / (1 - p)
        return selected(x, bits, ctx.scale)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, None, None]:
        (bits,) = ctx.saved_tensors
        return selected(grad_output, bits, ctx.scale), None, None


def bit_dropout(x: Tensor, p: float = 0.5) -> Tensor:
    """What a layer calls: the numbers are drawn here, so that a check can hold them fixed."""
    return BitDropout.apply(x, torch.rand(x.shape, device=x.device), p)


gradsmith_inputs = {
    "BitDropout": lambda: (
        torch.randn(5, 3, dtype=torch.float64, requires_grad=True),
        torch.linspace(0.05, 0.95, 15).reshape(5, 3),
        0.4,
    )
}
