"""Functions that free the memory of a tensor, each another one; run as a script, one of them is checked."""

from __future__ import annotations

import sys
from typing import Any

import torch
from torch import Tensor


def free(tensor: Tensor) -> None:
    tensor.untyped_storage().resize_(0)


class FreesInput(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x.cos())
        y = x.sin()
        free(x)
        return y

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Any:
        return grad_output * ctx.saved_tensors[0]


class FreesConstant(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(weight.clone())
        y = x * weight
        free(weight)
        return y

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Any:
        return grad_output * ctx.saved_tensors[0], None


class ReadsWhatItFreed(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        y = x.sin()
        free(x)
        return y

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Any:
        return grad_output * ctx.saved_tensors[0].cos()


class FreesSavedInput(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x.sin()

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Any:
        (x,) = ctx.saved_tensors
        result = grad_output * x.cos()
        free(x)
        return result


class FreesSavedOutput(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Any:
        (y,) = ctx.saved_tensors
        result = grad_output * y
        free(y)
        return result


class FreesItsOwn(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x.cos())
        return x.sin()

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Any:
        (cosine,) = ctx.saved_tensors
        result = grad_output * cosine
        free(cosine)
        return result


class FreesAttribute(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.kept = [x.cos()]
        return x.sin()

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Any:
        result = grad_output * ctx.kept[0]
        free(ctx.kept[0])
        return result


class FreesGradOutput(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x.sin()

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Any:
        result = grad_output * ctx.saved_tensors[0].cos()
        free(grad_output)
        return result


class ReturnsFreedGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return 2 * x

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Any:
        result = 2 * grad_output
        free(result)
        return result


class ReturnsFreedOutput(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        y = 2 * x
        free(y)
        return y

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Any:
        return 2 * grad_output


def checked(name: str, *, guess: bool) -> str:
    import gradsmith as gs

    def leaf() -> Tensor:
        return torch.randn(4, 3, dtype=torch.float64, requires_grad=True)

    inputs = (leaf(), leaf().detach()) if name == "FreesConstant" else (leaf(),)
    return gs.check(globals()[name], *(() if guess else inputs)).to_json()


if __name__ == "__main__":
    print(checked(sys.argv[1], guess=sys.argv[2] == "guess"))
