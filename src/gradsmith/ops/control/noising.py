"""`grad_noise`: y = x, dx = g + std * N(0, 1). Randomness in backward is an error elsewhere; here it is declared."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from gradsmith.lab.subject.surrogates import surrogate
from gradsmith.native.outside_compile import leave_graph
from gradsmith.ops.asked import floating, number
from gradsmith.ops.route import applier, is_compiling


class Noise(torch.autograd.Function):  # gradsmith: surrogate[noise]
    """The identity whose gradient is disturbed."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor, std: float, generator: torch.Generator | None) -> Tensor:
        return x.view_as(x)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Tensor) -> None:
        _, ctx.std, ctx.generator = inputs

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, None, None]:
        if ctx.generator is None:
            noise = torch.randn_like(grad_output)
        else:
            noise = torch.empty_like(grad_output).normal_(generator=ctx.generator)
        return grad_output + ctx.std * noise, None, None


_noise = applier(Noise)


def grad_noise(
    x: Tensor, std: float, generator: torch.Generator | None = None
) -> Tensor:  # gradsmith: surrogate[noise]
    """x itself; normal noise of this standard deviation is added to its gradient.

    Under vmap, call vmap with randomness="different" or "same", as for every random operation of torch.

    >>> x = torch.ones(2, requires_grad=True)
    >>> grad_noise(x, std=0.0).sum().backward(); x.grad
    tensor([1., 1.])
    """
    floating(x, "grad_noise")
    number(std, "grad_noise", "std", least=0)
    if generator is not None and not isinstance(generator, torch.Generator):
        raise TypeError(f"grad_noise: generator must be a torch.Generator, not {type(generator).__name__}.")
    traced = generator is not None and is_compiling()
    result: Tensor = (
        leave_graph("a torch.Generator cannot be traced", _noise, x, std, generator)
        if traced
        else _noise(x, std, generator)
    )
    return result


class GradNoise(nn.Module):
    """`grad_noise` as a module; in eval mode it adds nothing.

    >>> GradNoise(0.01)
    GradNoise(std=0.01)
    """

    def __init__(self, std: float, generator: torch.Generator | None = None) -> None:
        super().__init__()
        number(std, "GradNoise", "std", least=0)
        self.std, self.generator = std, generator
        surrogate("noise")(self)

    def forward(self, x: Tensor) -> Tensor:
        return grad_noise(x, self.std, self.generator) if self.training else x

    def extra_repr(self) -> str:
        return f"std={self.std}"
