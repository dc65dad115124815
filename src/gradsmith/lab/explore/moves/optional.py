"""What the example leaves out, given: a tensor in the place of None, where the source says that None is one of two cases."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from gradsmith.lab.explore.defaults import names_of
from gradsmith.lab.explore.move import Kind, Move
from gradsmith.lab.explore.moves.option_values import source_of
from gradsmith.lab.lab import Lab
from gradsmith.lab.run import forward
from gradsmith.lab.subject.arguments import Arguments, Leaf
from gradsmith.source.options import takes_none

_MOST = 12  # shapes that are tried


@dataclass(frozen=True)
class Give(Move):
    """A tensor for an argument that the example leaves out."""

    position: int
    shape: tuple[int, ...]
    mask: bool
    kind: ClassVar[Kind] = "named option"
    addresses: ClassVar[bool] = True
    order: ClassVar[int] = 0
    trained: ClassVar[bool] = False

    def applied(self, arguments: Arguments, seed: int) -> Arguments | None:
        if arguments.flat[self.position] is not None:
            return None
        return _given(arguments, self.position, self.argument, self._drawn(arguments, seed), self.trained)

    def _drawn(self, arguments: Arguments, seed: int) -> Tensor:
        generator = torch.Generator().manual_seed(seed)
        kind = next((x.tensor.dtype for x in arguments.leaves if x.tensor.is_floating_point()), torch.float64)
        if self.mask:
            return torch.rand(self.shape, generator=generator) < 0.6
        return torch.randn(self.shape, generator=generator, dtype=torch.float64).to(kind)

    def words(self) -> str:
        return f"with a tensor of shape {self.shape} for '{self.argument}'"


@dataclass(frozen=True)
class GiveTrained(Give):
    """The same, requiring grad."""

    kind: ClassVar[Kind] = "requires grad"
    order: ClassVar[int] = 5
    trained: ClassVar[bool] = True

    def words(self) -> str:
        return f"with a tensor of shape {self.shape} that requires grad for '{self.argument}'"


def moves(lab: Lab, arguments: Arguments) -> Iterator[Move]:
    """For each tensor that may be left out and is, the first shape that forward takes without changing its outputs' shapes."""
    source = source_of(lab.target)
    if source is None:
        return
    for position, name in enumerate(arguments.names(names_of(lab.target))):
        if arguments.flat[position] is None and takes_none(source, name):
            yield from _first(lab, arguments, position, name)


def _first(lab: Lab, arguments: Arguments, position: int, name: str) -> Iterator[Move]:
    target, seed = lab.precise[0], lab.settings.seed
    before = [out.shape for out in forward(target, arguments, seed=seed).outputs]
    for mask in (False, True):
        for shape in list(dict.fromkeys(_shapes(arguments)))[:_MOST]:
            move = Give(name, position, shape, mask)
            try:
                other = move.applied(arguments, seed)
                after = [o.shape for o in forward(target, other, seed=seed).outputs] if other is not None else None
            except Exception:  # the user's forward, on a shape that nobody named
                continue
            if after == before:
                yield move
                if not mask:
                    yield GiveTrained(name, position, shape, mask)
                return


def _shapes(arguments: Arguments) -> Iterator[tuple[int, ...]]:
    """Those of the other inputs, and with one dimension less: a bias, a state, a weight for each row."""
    shapes = [tuple(leaf.tensor.shape) for leaf in arguments.leaves if leaf.tensor.ndim]
    yield from shapes
    for shape in shapes:
        for dim in range(len(shape)):
            yield shape[:dim] + shape[dim + 1 :]
        yield shape[-1:]
        yield shape[:1]


def _given(arguments: Arguments, position: int, name: str, value: Tensor, trained: bool) -> Arguments:
    flat = [value if i == position else v for i, v in enumerate(arguments.flat)]
    leaves = sorted([*arguments.leaves, Leaf(name, position, value, trained)], key=lambda leaf: leaf.position)
    return Arguments(flat, arguments.spec, leaves)
