"""Built-in, with the whole output saved: torch.relu. The rectifier with a mask of one bit per element.

    y  = max(x, 0)
    dx = g where the bit is set, else 0

Teaches: a bool tensor takes one byte per element; packing eight of them into a uint8 is what makes it one bit, 1/32
    of a float32. The packed bits are integers, so saving them does no harm to the second derivative.
When not to use it: when the output is saved by the next layer anyway (see relu.py) the mask is pure extra cost.
"""

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

TEACHES = "a bool is a byte: pack eight into a uint8 to save one bit per element"
BUILTIN = "torch.relu"
SECOND_ORDER = True
COMPILES = True


def pack(mask: Tensor) -> Tensor:
    """Eight bools per byte, lowest bit first; the last byte is filled up with zeros."""
    bits = F.pad(mask.reshape(-1).to(torch.uint8), (0, -mask.numel() % 8)).reshape(-1, 8)
    return (bits << bit_places(mask)).sum(1, dtype=torch.uint8)


def unpack(packed: Tensor, shape: torch.Size) -> Tensor:
    bits = packed.unsqueeze(1) >> bit_places(packed) & 1
    return bits.reshape(-1)[: shape.numel()].reshape(shape).to(torch.bool)


def bit_places(like: Tensor) -> Tensor:
    return torch.arange(8, dtype=torch.uint8, device=like.device)


class BitMaskReLU(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        positive = x > 0
        ctx.save_for_backward(pack(positive))  # gradsmith: ignore[intermediate-saved]
        return torch.where(positive, x, 0)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Tensor:
        (packed,) = ctx.saved_tensors
        return torch.where(unpack(packed, grad_output.shape), grad_output, 0)


def away_from_zero() -> tuple[Tensor]:
    """Fifteen values (not a multiple of eight), at least 0.1 from the corner at 0."""
    x = torch.randn(5, 3, dtype=torch.float64)
    return ((x + 0.1 * x.sign()).requires_grad_(),)


gradsmith_inputs = {"BitMaskReLU": away_from_zero}
