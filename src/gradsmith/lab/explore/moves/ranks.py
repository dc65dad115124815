"""Another number of dimensions: a batch of what the example has one of."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from gradsmith.lab.explore.drawing import redrawn, resampled
from gradsmith.lab.explore.move import Kind, Move
from gradsmith.lab.explore.moves.values import leaf_at, movable
from gradsmith.lab.lab import Lab
from gradsmith.lab.run import forward
from gradsmith.lab.subject.arguments import Arguments, Leaf

_MOST_COPIES = 8
_MOST_DIMENSIONS = 4  # batch, channels, height, width: a fifth is nobody's mistake to forget


@dataclass(frozen=True)
class Stack(Move):
    """One more leading dimension for these inputs: what is there, and other draws of it."""

    positions: tuple[int, ...]
    ndim: int
    own: bool = False  # of the example's numbers: forward refuses others
    kind: ClassVar[Kind] = "structure"
    addresses: ClassVar[bool] = True

    def applied(self, arguments: Arguments, seed: int) -> Arguments | None:
        generator = torch.Generator().manual_seed(seed)
        leaves = [leaf_at(arguments, p) for p in self.positions]
        count = self.copies(arguments)
        tensors = {x.position: _stacked(x, count, generator, self.own) for x in leaves if x is not None}
        return arguments.replaced(tensors) if tensors else None

    def copies(self, arguments: Arguments) -> int:
        """As many as the last dimension has: a gradient that lacks a dimension is then broadcast, and not refused."""
        leaf = leaf_at(arguments, self.positions[0])
        size = leaf.tensor.shape[-1] if leaf is not None and leaf.tensor.ndim else 2
        return size if 1 < size <= _MOST_COPIES else 2

    def words(self) -> str:
        return f"with one more leading dimension of '{self.argument}'"

    @property
    def assumes(self) -> str:
        return f"'{self.argument}' has {self.ndim} dimension{'s' if self.ndim != 1 else ''}"


def moves(lab: Lab, arguments: Arguments) -> Iterator[Move]:
    """A batch, where forward treats it as one: each entry as if it had been given alone."""
    leaves = [x for x in arguments.leaves if movable(x) and not x.of_module]
    first = next((x for x in leaves if x.differentiable), None)
    if first is None or not 0 < first.tensor.ndim < _MOST_DIMENSIONS or lab.stochastic:
        return
    alike = tuple(x.position for x in leaves if x.tensor.ndim == first.tensor.ndim)
    every = tuple(x.position for x in arguments.leaves if x.tensor.ndim > 0 and x.tensor.numel() > 1)
    for positions, own in itertools.product(dict.fromkeys((alike, every)), (False, True)):
        move = Stack(first.name, positions, first.tensor.ndim, own)
        if _is_a_batch(lab, arguments, move):
            yield move
            return


def _is_a_batch(lab: Lab, arguments: Arguments, move: Stack) -> bool:
    """Whether the first entry of the outputs is what forward gives for the example alone."""
    target, seed = lab.precise[0], lab.settings.seed
    try:
        alone = forward(target, arguments, seed=seed).outputs
        stacked = move.applied(arguments, seed)
        together = forward(target, stacked, seed=seed).outputs if stacked is not None else []
    except Exception:  # the user's forward, with a dimension that it may not take
        return False
    return len(alone) == len(together) and all(
        b.shape == (move.copies(arguments), *a.shape) and lab.close(a, b[0]) for a, b in zip(alone, together)
    )


def _stacked(leaf: Leaf, count: int, generator: torch.Generator, own: bool) -> Tensor:
    given = leaf.tensor.detach()
    others = [given] * (count - 1)
    if own and movable(leaf) and not leaf.domains and not given.is_complex():
        others = [resampled(given, given.shape, generator) for _ in others]
    elif movable(leaf):
        others = [
            redrawn(given, given.shape, generator, differentiable=leaf.differentiable, known=leaf.domains)
            for _ in others
        ]
    return torch.stack([given, *others]).contiguous()
