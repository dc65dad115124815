"""Another number of dimensions, where forward accepts it: a batch of what the example has one of, a dimension of size 1."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from gradsmith.lab.explore.domains import redrawn
from gradsmith.lab.explore.move import Kind, Move
from gradsmith.lab.explore.moves.values import leaf_at, movable
from gradsmith.lab.lab import Lab
from gradsmith.lab.subject.arguments import Arguments, Leaf

_MOST_COPIES = 8
_MOST_DIMENSIONS = 4  # batch, channels, height, width: a fifth is nobody's mistake to forget


@dataclass(frozen=True)
class Stack(Move):
    """One more dimension, at the front or the end, for these inputs: what is there, and another draw of it."""

    positions: tuple[int, ...]
    dim: int  # 0 or -1
    ndim: int
    kind: ClassVar[Kind] = "structure"
    addresses: ClassVar[bool] = True

    def applied(self, arguments: Arguments, seed: int) -> Arguments | None:
        generator = torch.Generator().manual_seed(seed)
        leaves = [leaf_at(arguments, p) for p in self.positions]
        tensors = {x.position: _stacked(x, self.dim, generator) for x in leaves if x is not None}
        return arguments.replaced(tensors) if tensors else None

    def words(self) -> str:
        where = "leading" if self.dim == 0 else "trailing"
        return f"with one more {where} dimension of '{self.argument}'"

    @property
    def assumes(self) -> str:
        return f"'{self.argument}' has {self.ndim} dimension{'s' if self.ndim != 1 else ''}"


@dataclass(frozen=True)
class Broadcast(Move):
    """One dimension of one input at size 1, which is broadcast. That forward accepts it need not be meant."""

    position: int
    dim: int
    kind: ClassVar[Kind] = "structure"
    addresses: ClassVar[bool] = True

    def applied(self, arguments: Arguments, seed: int) -> Arguments | None:
        leaf = leaf_at(arguments, self.position)
        if leaf is None or leaf.tensor.ndim <= self.dim or leaf.tensor.shape[self.dim] < 2:
            return None
        return arguments.replaced({self.position: leaf.tensor.detach().narrow(self.dim, 0, 1).clone()})

    def words(self) -> str:
        return f"with dim {self.dim} of '{self.argument}' at 1 alone"

    @property
    def assumes(self) -> str:
        return f"'{self.argument}' is not broadcast in dim {self.dim}"


def moves(lab: Lab, arguments: Arguments) -> Iterator[Move]:
    leaves = [x for x in arguments.leaves if movable(x) and not x.name.startswith("parameters[")]
    first = next((x for x in leaves if x.differentiable), None)
    if first is not None and 0 < first.tensor.ndim < _MOST_DIMENSIONS:
        alike = tuple(x.position for x in leaves if x.tensor.ndim == first.tensor.ndim)
        every = tuple(x.position for x in arguments.leaves if x.tensor.ndim > 0 and x.tensor.numel() > 1)
        for positions in dict.fromkeys((alike, every)):
            yield Stack(first.name, positions, 0, first.tensor.ndim)
        yield Stack(first.name, (first.position,), -1, first.tensor.ndim)
    for leaf in leaves:
        # Two inputs of one shape are meant to be alike.
        if len(leaves) > 1 and not any(x is not leaf and x.tensor.shape == leaf.tensor.shape for x in leaves):
            for dim, size in enumerate(leaf.tensor.shape):
                if size > 1:
                    yield Broadcast(leaf.name, leaf.position, dim)


def _stacked(leaf: Leaf, dim: int, generator: torch.Generator) -> Tensor:
    given = leaf.tensor.detach()
    other = redrawn(given, given.shape, generator, differentiable=leaf.differentiable) if movable(leaf) else given
    # As many as the last dimension has: a gradient that lacks a dimension is then broadcast, and not refused.
    count = given.shape[-1] if 1 < given.shape[-1] <= _MOST_COPIES else 2
    return torch.stack(
        [given, *(other * (1 + 0.25 * k) if movable(leaf) else other for k in range(count - 1))], dim
    ).contiguous()
