"""`stop_gradient`: y = x, and no gradient flows back.

None, not zeros: nothing below is computed. Other than with `detach`, the result still requires grad, so a loss that
reaches its parameters through other paths only needs no special case.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from gradsmith.lab.subject.surrogates import surrogate
from gradsmith.ops.asked import floating
from gradsmith.ops.route import applier


class Stop(torch.autograd.Function):  # gradsmith: surrogate[stop]
    """The identity without a gradient."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor) -> Tensor:
        return x.view_as(x)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Tensor) -> None:
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> None:
        return None


_stop = applier(Stop)


def stop_gradient(x: Tensor) -> Tensor:  # gradsmith: surrogate[stop]
    """x itself; no gradient flows back through it.

    >>> x = torch.ones(2, requires_grad=True)
    >>> (x * stop_gradient(x)).sum().backward(); x.grad
    tensor([1., 1.])
    """
    floating(x, "stop_gradient")
    result: Tensor = _stop(x)
    return result


class StopGradient(nn.Module):
    """`stop_gradient` as a module.

    >>> StopGradient()
    StopGradient()
    """

    def __init__(self) -> None:
        super().__init__()
        surrogate("stop")(self)

    def forward(self, x: Tensor) -> Tensor:
        return stop_gradient(x)
