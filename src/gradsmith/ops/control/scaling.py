"""`grad_scale` and `grad_reverse`: y = x, dx = scale * g.

The scale is the one of the forward call: a schedule that moves on between forward and backward changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from gradsmith.lab.subject.surrogates import surrogate
from gradsmith.ops.asked import floating, number
from gradsmith.ops.route import applier

Number = float | Tensor


class Scale(torch.autograd.Function):  # gradsmith: surrogate[scale]
    """The identity whose gradient is multiplied."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor, scale: Number) -> Tensor:
        return x.view_as(x)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Tensor) -> None:
        ctx.scale = inputs[1]
        if isinstance(ctx.scale, Tensor):
            ctx.save_for_backward(ctx.scale)
            ctx.scale = None

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, None]:
        scale = ctx.saved_tensors[0].detach() if ctx.scale is None else ctx.scale
        return grad_output * scale, None


_scale = applier(Scale)


def grad_scale(x: Tensor, scale: Number) -> Tensor:  # gradsmith: surrogate[scale]
    """x itself; its gradient is multiplied by `scale` (a number, or a tensor of one element).

    >>> x = torch.ones(2, requires_grad=True)
    >>> grad_scale(x, 0.5).sum().backward(); x.grad
    tensor([0.5000, 0.5000])
    """
    floating(x, "grad_scale")
    number(scale, "grad_scale", "scale")
    result: Tensor = _scale(x, scale)
    return result


def grad_reverse(x: Tensor, strength: Number = 1.0) -> Tensor:  # gradsmith: surrogate[reversal]
    """x itself; its gradient is multiplied by `-strength`: what is below learns to make the loss above larger.

    >>> x = torch.ones(2, requires_grad=True)
    >>> grad_reverse(x).sum().backward(); x.grad
    tensor([-1., -1.])
    """
    floating(x, "grad_reverse")
    number(strength, "grad_reverse", "strength")
    result: Tensor = _scale(x, -strength)
    return result


class GradScale(nn.Module):
    """`grad_scale` as a module.

    >>> GradScale(0.1)
    GradScale(scale=0.1)
    """

    def __init__(self, scale: float) -> None:
        super().__init__()
        number(scale, "GradScale", "scale")
        self.scale = scale
        surrogate("scale")(self)

    def forward(self, x: Tensor) -> Tensor:
        return grad_scale(x, self.scale)

    def extra_repr(self) -> str:
        return f"scale={self.scale}"


class GradReverse(nn.Module):
    """`grad_reverse` as a module, with a strength that may follow a schedule: a function of the number of steps.

    The strength is a buffer: it is saved with the model, and changing it does not make torch.compile compile again.

    >>> layer = GradReverse(lambda step: min(1.0, step / 100))
    >>> layer.strength.item()
    0.0
    >>> layer.step(); round(layer.strength.item(), 4)
    0.01
    """

    strength: Tensor
    steps: Tensor

    def __init__(self, strength: float | Callable[[int], float] = 1.0) -> None:
        super().__init__()
        self.schedule = strength if callable(strength) else None
        first = strength(0) if callable(strength) else strength
        number(first, "GradReverse", "strength")
        self.register_buffer("strength", torch.tensor(float(first)))
        self.register_buffer("steps", torch.tensor(0))
        surrogate("reversal")(self)

    def set_strength(self, strength: float) -> None:
        """Use this strength from the next forward call on."""
        number(strength, "GradReverse", "strength")
        # A new tensor: graphs that were built before keep the old one.
        self.strength = torch.full_like(self.strength, strength)

    def step(self) -> None:
        """One step of the schedule; call it beside optimizer.step()."""
        if self.schedule is None:
            raise RuntimeError("GradReverse: there is no schedule. Give a function of the step, or use set_strength().")
        self.steps = self.steps + 1
        self.set_strength(self.schedule(int(self.steps)))

    def forward(self, x: Tensor) -> Tensor:
        return grad_reverse(x, self.strength)

    def extra_repr(self) -> str:
        return f"strength={float(self.strength):g}"
