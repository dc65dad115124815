"""Random cells: a step is a list of operations, each on values that exist; the last of them become state and output."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn import functional as F

# Each maps (rows, n) to (rows, n), or to fewer columns; `w` makes a parameter of the cell.
Weights = Callable[..., Tensor]
OPERATIONS: dict[str, Callable[[Tensor, Tensor, Weights], Tensor]] = {
    "tanh": lambda p, q, w: torch.tanh(p),
    "sigmoid": lambda p, q, w: torch.sigmoid(p),
    "relu": lambda p, q, w: torch.relu(p),
    "softplus": lambda p, q, w: F.softplus(p),
    "gelu": lambda p, q, w: F.gelu(p),
    "elu": lambda p, q, w: F.elu(p),
    "exp": lambda p, q, w: torch.exp(-p * p),
    "sine": lambda p, q, w: torch.sin(p) + torch.cos(q),
    "sum": lambda p, q, w: p + q,
    "product": lambda p, q, w: torch.tanh(p) * torch.tanh(q),
    "quotient": lambda p, q, w: p / (1.5 + q * q),
    "where": lambda p, q, w: torch.where(p > q, p * 0.5, torch.tanh(q)),
    "maximum": lambda p, q, w: torch.maximum(p, q),
    "clamp": lambda p, q, w: p.clamp(-0.7, 0.9),
    "lerp": lambda p, q, w: torch.lerp(p, q, torch.sigmoid(q)),
    "power": lambda p, q, w: torch.pow(1 + p.sigmoid(), 2.5),
    "rounded": lambda p, q, w: p + (torch.round(p) - p).detach(),
    "frozen": lambda p, q, w: p.detach() * q,
    "linear": lambda p, q, w: F.linear(p, w(p.shape[1], p.shape[1]), w(p.shape[1])),
    "narrow": lambda p, q, w: F.linear(p, w((p.shape[1] + 1) // 2, p.shape[1])),
    "product from the left": lambda p, q, w: p @ w(p.shape[1], p.shape[1]),
    "scale": lambda p, q, w: p * w(p.shape[1]) + w(1),
    "softmax": lambda p, q, w: torch.softmax(p, -1),
    "norm": lambda p, q, w: F.layer_norm(torch.cat([p, p.sin()], -1), (2 * p.shape[1],))[:, : p.shape[1]],
    "rms": lambda p, q, w: p * torch.rsqrt(p.pow(2).mean(-1, keepdim=True) + 0.1),
    "largest": lambda p, q, w: p - p.amax(1, keepdim=True),
    "spread": lambda p, q, w: p + (p.var(1, keepdim=True, unbiased=False) + 0.3).sqrt(),
    "flip": lambda p, q, w: p.flip(-1),
    "roll": lambda p, q, w: torch.roll(p, 1, -1),
    "part": lambda p, q, w: p[:, : (p.shape[1] + 1) // 2],
    "every other": lambda p, q, w: p[:, ::2],
    "joined": lambda p, q, w: torch.cat([q[:, :1], p], -1)[:, : p.shape[1]],
    "first column": lambda p, q, w: p[:, :1] * q,
    "pairs": lambda p, q, w: torch.tanh(p[:, :2].unsqueeze(2) * q[:, :2].unsqueeze(1)).flatten(1),
}


class RandomCell(nn.Module):
    """`operations` are (name, which value, which other value of the same size); parameters are drawn from the seed."""

    def __init__(
        self, inputs: int, hidden: int, states: int, operations: list[tuple[str, int, int]], seed: int
    ) -> None:
        super().__init__()
        self.hidden_size, self.states, self.operations = hidden, states, operations
        self.made = nn.ParameterList()
        self.generator_seed = seed
        self._values(torch.zeros(2, inputs), [torch.zeros(2, hidden)] * states, self._make)

    def _make(self, *shape: int) -> Tensor:
        generator = torch.Generator().manual_seed(self.generator_seed + len(self.made))
        self.made.append(nn.Parameter(torch.randn(shape, generator=generator) * 0.6 / shape[-1] ** 0.5))
        return self.made[-1]

    def _values(self, x: Tensor, states: list[Tensor], w: Weights) -> tuple[list[Tensor], list[Tensor]]:
        values = [x, *states]
        for name, one, other in self.operations:
            p = values[one % len(values)]
            same = [v for v in values if v.shape == p.shape]
            values.append(OPERATIONS[name](p, same[other % len(same)], w))
        ends = [values[-1 - k % len(values)] for k in range(self.states)]
        new = [torch.tanh(F.linear(v, w(self.hidden_size, v.shape[1])) + s) for v, s in zip(ends, states)]
        return values, new

    def forward(self, x: Tensor, state: Any) -> Any:
        made = iter(self.made)
        values, new = self._values(x, list(state), lambda *shape: next(made))
        return (values[-1], new[0]), tuple(new)


@dataclass(frozen=True)
class Run:
    """A cell, its inputs and how they are run."""

    cell: RandomCell
    x: Tensor
    state: tuple[Tensor, ...]
    options: dict[str, Any]
    threads: int


@st.composite
def runs(draw: st.DrawFn) -> Run:
    names = st.sampled_from(sorted(OPERATIONS))
    place = st.integers(0, 30)
    operations = draw(st.lists(st.tuples(names, place, place), min_size=1, max_size=10))
    inputs, hidden = draw(st.integers(1, 9)), draw(st.sampled_from([1, 2, 5, 8, 17, 33]))
    states, batch, steps = (
        draw(st.integers(1, 3)),
        draw(st.sampled_from([1, 2, 3, 8])),
        draw(st.sampled_from([1, 2, 7, 20])),
    )
    cell = RandomCell(inputs, hidden, states, operations, draw(st.integers(0, 99))).double()
    generator = torch.Generator().manual_seed(3)
    x = torch.randn(steps, batch, inputs, generator=generator, dtype=torch.float64)
    layout = draw(st.sampled_from(["contiguous", "batch first", "every other column", "expanded"]))
    if layout == "batch first":
        x = x.transpose(0, 1).contiguous().transpose(0, 1)
    elif layout == "every other column":
        x = torch.stack([x, torch.full_like(x, torch.nan)], -1)[..., 0]
    elif layout == "expanded":
        x = x[:, :1].expand(-1, batch, -1)
    options: dict[str, Any] = {"reverse": True} if draw(st.booleans()) else {}
    if draw(st.booleans()):
        options["checkpoint_every"] = draw(st.integers(1, steps))
    if draw(st.booleans()):
        options["lengths"] = torch.tensor(draw(st.lists(st.integers(1, steps), min_size=batch, max_size=batch)))
    start = tuple(0.5 * torch.randn(batch, hidden, generator=generator, dtype=torch.float64) for _ in range(states))
    return Run(cell, x, start, options, draw(st.sampled_from([1, 2])))
