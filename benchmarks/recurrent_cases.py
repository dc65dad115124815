"""The cells, shapes and alternatives that `recurrent.py` measures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from gradsmith.recurrent import linear_recurrence, scan
from gradsmith.recurrent.cells import (
    GRUCell,
    LayerNormLSTMCell,
    LSTMCell,
    MinGRUCell,
    PeepholeLSTMCell,
    ReluRNNCell,
    TanhRNNCell,
)
from gradsmith.recurrent.spiking import AdaptiveLIFCell, LIFCell

SHAPES = {
    "32x128x256": (256, 32, 128),
    "16x256x512": (512, 16, 256),
    "8x64x256": (256, 8, 64),
    "1x32x1000": (1000, 1, 32),
}
LARGE = {"32x256x128": (128, 32, 256), "64x512x64": (64, 64, 512), "128x1024x32": (32, 128, 1024)}
SHORT = {shape.rpartition("x")[0] + "x64": (64, batch, size) for shape, (_, batch, size) in SHAPES.items()}
ALL_SHAPES = {**SHAPES, **LARGE, **SHORT}
CELLS: dict[str, Any] = {
    "rnn": TanhRNNCell, "gru": GRUCell, "lstm": LSTMCell, "layer-norm-lstm": LayerNormLSTMCell, "lif": LIFCell,
    "alif": AdaptiveLIFCell,
}  # fmt: skip
READY: dict[str, Any] = {**CELLS, "relu-rnn": ReluRNNCell, "peephole-lstm": PeepholeLSTMCell, "min-gru": MinGRUCell}
LAYERS: dict[str, Any] = {"rnn": nn.RNN, "gru": nn.GRU, "lstm": nn.LSTM}


@dataclass
class Case:
    """Ways to compute the same thing, each a function of x that returns y; `inputs` are not counted as saved."""

    x: Tensor
    ways: dict[str, Callable[[Tensor], Tensor]]
    parameters: dict[str, list[Tensor]]
    inputs: list[Tensor] = field(default_factory=list)
    named: dict[str, Tensor] = field(default_factory=dict)
    elsewhere: dict[str, Callable[[], tuple[float, float]]] = field(default_factory=dict)
    """Ways in other processes: two calls in a row each, returning their seconds."""
    processes: list[int] = field(default_factory=list)
    """Those other processes."""
    seconds: dict[str, list[float]] = field(default_factory=dict)
    """Of the second of two calls in a row."""
    first_seconds: dict[str, list[float]] = field(default_factory=dict)
    """Of the first of the two: what ran before has left the caches to others."""


def with_index(cell: nn.Module, state: Any) -> Callable[[Tensor], Tensor]:
    def loop(x: Tensor) -> Tensor:
        carried, outputs = state, []
        for t in range(x.shape[0]):
            y, carried = cell(x[t], carried)
            outputs.append(y)
        return torch.stack(outputs)

    return loop


def with_unbind(cell: nn.Module, state: Any) -> Callable[[Tensor], Tensor]:
    def loop(x: Tensor) -> Tensor:
        carried, outputs = state, []
        for x_t in x.unbind(0):
            y, carried = cell(x_t, carried)
            outputs.append(y)
        return torch.stack(outputs)

    return loop


class Projected(nn.Module):
    """A cell given `W x` instead of x: what a user writes who hoists the projection by hand."""

    def __init__(self, cell: Any) -> None:
        super().__init__()
        self.cell, self.weight = cell, cell.weight_ih

    def forward(self, z: Tensor, state: Any) -> Any:
        original = nn.functional.linear

        def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
            if weight is self.weight:
                return x if bias is None else x + bias
            return original(x, weight, bias)

        nn.functional.linear = linear
        try:
            return self.cell(z, state)
        finally:
            nn.functional.linear = original


def with_hoisting(cell: Any, state: Any) -> Callable[[Tensor], Tensor]:
    loop = with_unbind(Projected(cell), state)
    return lambda x: loop(nn.functional.linear(x, cell.weight_ih))


def cell_case(name: str, steps: int, batch: int, size: int) -> Case:
    torch.manual_seed(0)
    cell = READY[name](size, size)
    state = cell.initial_state(batch)
    ways: dict[str, Callable[[Tensor], Tensor]] = {
        "gradsmith": lambda x: scan(cell, x, state)[0],
        "x[t]": with_index(cell, state),
        "unbind": with_unbind(cell, state),
    }
    if name in CELLS:
        ways["unbind+hoist"] = with_hoisting(cell, state)
    parameters = {way: list(cell.parameters()) for way in ways}
    if name in LAYERS:
        layer = LAYERS[name](size, size)
        ways[f"nn.{name.upper()}"] = lambda x: layer(x)[0]
        parameters[f"nn.{name.upper()}"] = list(layer.parameters())
    first = list(state) if isinstance(state, tuple) else [state]
    x = torch.randn(steps, batch, size, requires_grad=True)
    return Case(x, ways, parameters, first, dict(cell.named_parameters()))


def linear_case() -> Case:
    steps, batch, size = 4096, 4, 64
    a, b = torch.rand(steps, batch, size, requires_grad=True), torch.randn(steps, batch, size, requires_grad=True)

    def loop(b: Tensor) -> Tensor:
        h, outputs = torch.zeros(batch, size), []
        for a_t, b_t in zip(a.unbind(0), b.unbind(0)):
            h = a_t * h + b_t
            outputs.append(h)
        return torch.stack(outputs)

    ways = {"gradsmith": lambda b: linear_recurrence(a, b), "unbind": loop}
    return Case(b, ways, {"gradsmith": [a], "unbind": [a]})


def saved_bytes(case: Case, way: str) -> int:
    """Bytes of all storages that the graph saves for backward, except those of x, the first state and the parameters.

    The output counts only if backward needs it. Every way is measured with the same hook.
    """
    storages: dict[int, int] = {}
    alive: list[Tensor] = []

    def pack(tensor: Tensor) -> Tensor:
        alive.append(tensor)  # or its address could be used again, and counted once for two
        storages[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        case.ways[way](case.x)
    for tensor in (case.x, *case.inputs, *case.parameters[way]):
        storages.pop(tensor.untyped_storage().data_ptr(), None)
    return sum(storages.values())
