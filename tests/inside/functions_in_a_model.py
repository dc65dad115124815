"""Six custom Functions, right ones, in a model of 50 layers that also has everything a check could leave changed."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn


class Swish(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x * torch.sigmoid(x)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        s = torch.sigmoid(x)
        return grad_output * (s + x * s * (1 - s))


class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight)
        return x * weight

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, Tensor]:
        x, weight = ctx.saved_tensors
        return grad_output * weight, (grad_output * x).sum_to_size(weight.shape)


class Softsign(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x / (1 + x.abs())

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return grad_output / (1 + x.abs()) ** 2


class Linear(torch.autograd.Function):
    @staticmethod
    def forward(x: Tensor, weight: Tensor) -> Tensor:
        return x @ weight.t()

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Tensor) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, Tensor]:
        x, weight = ctx.saved_tensors
        return grad_output @ weight, grad_output.flatten(0, -2).t() @ x.flatten(0, -2)


class Centred(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, dim: int) -> Tensor:
        ctx.dim = dim
        return x - x.mean(dim, keepdim=True)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, None]:
        return grad_output - grad_output.mean(ctx.dim, keepdim=True), None


class Shifted(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, bias: Tensor) -> Tensor:
        ctx.shape = bias.shape
        return x + bias

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, Tensor]:
        return grad_output, grad_output.sum_to_size(ctx.shape)


SIX = (Swish, Scaled, Softsign, Linear, Centred, Shifted)


class Layer(nn.Module):
    def __init__(self, width: int, number: int) -> None:
        super().__init__()
        self.function = SIX[number % 6]
        shapes = {Scaled: (width,), Shifted: (width,), Linear: (width, width)}
        if self.function in shapes:
            self.weight = nn.Parameter(torch.randn(shapes[self.function]) * 0.3)
        self.register_buffer("seen", torch.zeros(()))
        self.calls = 0

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        if self.training:
            self.get_buffer("seen").add_(1)
        more = [-1] if self.function is Centred else list(self.parameters())
        return self.function.apply(x, *more)


class Deep(nn.Module):
    def __init__(self, width: int = 6, layers: int = 50) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.ModuleList(Layer(width, number) for number in range(layers))
        self.norm = nn.BatchNorm1d(width)
        self.drop = nn.Dropout(0.1)

    def forward(self, x: Tensor) -> Tensor:
        x = self.drop(self.norm(x))
        for layer in self.layers:
            x = x + 0.1 * layer(x)
        return x
