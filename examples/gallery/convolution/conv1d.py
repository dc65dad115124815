"""Built-in: torch.nn.functional.conv1d. Convolution over one dimension, with stride, padding and optional bias.

    y[n, o, t] = b[o] + sum over c, k of w[o, c, k] * xp[n, c, t * stride + k]        (xp: x padded with zeros)
    dx = transposed convolution of g with w
    dw[o, c, k] = sum over n, t of g[n, o, t] * xp[n, c, t * stride + k]        db[o] = sum over n, t of g[n, o, t]

Teaches: every formula reads off the same index t * stride + k. With a stride, the last few inputs may never be read:
    output_padding gives them their zero gradient, and forgetting it is a shape error only for some lengths.
When not to use it: the built-in is far faster; torch.nn.grad has its backward ready-made.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

TEACHES = "one index, t * stride + k, derives all three gradients; output_padding for inputs the stride never reads"
BUILTIN = "torch.nn.functional.conv1d"
SECOND_ORDER = True
COMPILES = True


class Conv1d(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, stride: int = 1, padding: int = 0) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.stride, ctx.padding = stride, padding
        return F.conv1d(x, weight, bias, stride, padding)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None, None, None]:
        x, weight = ctx.saved_tensors
        stride, padding, width = ctx.stride, ctx.padding, weight.shape[-1]
        grad_x = grad_weight = grad_bias = None
        if ctx.needs_input_grad[0]:
            unread = (x.shape[-1] + 2 * padding - width) % stride
            grad_x = F.conv_transpose1d(grad_output, weight, stride=stride, padding=padding, output_padding=unread)
        if ctx.needs_input_grad[1]:
            windows = F.pad(x, (padding, padding)).unfold(-1, width, stride)
            grad_weight = torch.einsum("not,nctk->ock", grad_output, windows)
        if ctx.needs_input_grad[2]:
            grad_bias = grad_output.sum((0, 2))
        return grad_x, grad_weight, grad_bias, None, None


class Conv1dLayer(nn.Module):
    def __init__(self, inputs: int, outputs: int, width: int, stride: int = 1, padding: int = 0) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(outputs, inputs, width) / (inputs * width) ** 0.5)
        self.bias = nn.Parameter(torch.zeros(outputs))
        self.stride, self.padding = stride, padding

    def forward(self, x: Tensor) -> Tensor:
        return Conv1d.apply(x, self.weight, self.bias, self.stride, self.padding)


def configured(length: int, bias: bool, stride: int, padding: int) -> tuple[Tensor, Tensor, Tensor | None, int, int]:
    return (
        torch.randn(2, 3, length, dtype=torch.float64, requires_grad=True),
        torch.randn(4, 3, 3, dtype=torch.float64, requires_grad=True),
        torch.randn(4, dtype=torch.float64, requires_grad=True) if bias else None,
        stride,
        padding,
    )


gradsmith_inputs = {
    "Conv1d": [
        lambda: configured(7, True, 1, 0),
        lambda: configured(8, True, 2, 1),
        lambda: configured(9, False, 3, 2),
    ]
}
