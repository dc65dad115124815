"""Spiking cells: leaky integrate-and-fire neurons that fire in forward and have a slope in backward."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn


class Spike(torch.autograd.Function):  # gradsmith: surrogate[straight-through]
    """1 where the potential is above threshold; its surrogate gradient is `1 / (1 + slope |v|)^2`.

    >>> Spike.apply(torch.tensor([-1.0, 2.0]), 10.0)
    tensor([0., 1.])
    """

    @staticmethod
    def forward(ctx: Any, v: Tensor, slope: float) -> Tensor:
        ctx.save_for_backward(v)
        ctx.slope = slope
        return (v > 0).to(v.dtype)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Any:
        (v,) = ctx.saved_tensors
        return grad_output / (1 + ctx.slope * v.abs()) ** 2, None


class LIFCell(nn.Module):
    """Leaky integrate-and-fire, reset by subtraction, optionally recurrent; the state is `(v, spikes)`.

    >>> spikes, (v, s) = LIFCell(3, 5)(torch.zeros(2, 3), (torch.zeros(2, 5), torch.zeros(2, 5)))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        recurrent: bool = True,
        leak: float = 0.9,
        threshold: float = 1.0,
        slope: float = 10.0,
    ) -> None:
        super().__init__()
        self.input_size, self.hidden_size = input_size, hidden_size
        self.leak, self.threshold, self.slope = leak, threshold, slope
        self.weight_ih = nn.Parameter(torch.empty(hidden_size, input_size))
        self.weight_hh = nn.Parameter(torch.empty(hidden_size, hidden_size)) if recurrent else None
        bound = 1 / math.sqrt(hidden_size)
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -bound, bound)

    def initial_state(self, batch: int) -> tuple[Tensor, ...]:
        zeros = self.weight_ih.new_zeros(batch, self.hidden_size)
        return zeros, zeros.clone()

    def current(self, x: Tensor, spikes: Tensor) -> Tensor:
        current = nn.functional.linear(x, self.weight_ih)
        return current if self.weight_hh is None else current + nn.functional.linear(spikes, self.weight_hh)

    def forward(self, x: Tensor, state: tuple[Tensor, ...]) -> tuple[Tensor, tuple[Tensor, ...]]:
        v, spikes = state
        v = self.leak * v + self.current(x, spikes) - self.threshold * spikes
        spikes = Spike.apply(v - self.threshold, self.slope)
        return spikes, (v, spikes)


class AdaptiveLIFCell(LIFCell):
    """LIF whose threshold rises with every spike and decays; the state is `(v, spikes, adaptation)`.

    >>> cell = AdaptiveLIFCell(3, 5)
    >>> spikes, state = cell(torch.zeros(2, 3), cell.initial_state(2))
    """

    def __init__(
        self, input_size: int, hidden_size: int, decay: float = 0.97, strength: float = 1.8, **lif: Any
    ) -> None:
        super().__init__(input_size, hidden_size, **lif)
        self.decay, self.strength = decay, strength

    def initial_state(self, batch: int) -> tuple[Tensor, ...]:
        v, spikes = super().initial_state(batch)
        return v, spikes, spikes.clone()

    def forward(self, x: Tensor, state: tuple[Tensor, ...]) -> tuple[Tensor, tuple[Tensor, ...]]:
        v, spikes, adaptation = state
        adaptation = self.decay * adaptation + (1 - self.decay) * spikes
        v = self.leak * v + self.current(x, spikes) - self.threshold * spikes
        spikes = Spike.apply(v - self.threshold - self.strength * adaptation, self.slope)
        return spikes, (v, spikes, adaptation)
