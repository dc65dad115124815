"""Masks and ids in another type that forward accepts: bytes or floats for a mask, 32 bits for ids."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import torch

from gradsmith.lab.explore.move import Kind, Move
from gradsmith.lab.explore.moves.values import leaf_at
from gradsmith.lab.lab import Lab
from gradsmith.lab.subject.arguments import Arguments

_OTHERS = {torch.bool: ("uint8", "float64"), torch.int64: ("int32",), torch.int32: ("int64",)}


@dataclass(frozen=True)
class Cast(Move):
    """The same numbers in another type."""

    position: int
    dtype: str
    kind: ClassVar[Kind] = "invented option"
    addresses: ClassVar[bool] = True
    order: ClassVar[int] = 5

    def applied(self, arguments: Arguments, seed: int) -> Arguments | None:
        leaf = leaf_at(arguments, self.position)
        if leaf is None:
            return None
        kind: torch.dtype = getattr(torch, self.dtype)
        return arguments.replaced({self.position: leaf.tensor.detach().to(kind)})

    def words(self) -> str:
        return f"with '{self.argument}' of type {self.dtype}"

    @property
    def assumes(self) -> str:
        return f"'{self.argument}' is not of type {self.dtype}"


def moves(lab: Lab, arguments: Arguments) -> Iterator[Move]:
    for leaf in arguments.leaves:
        yield from (Cast(leaf.name, leaf.position, other) for other in _OTHERS.get(leaf.tensor.dtype, ()))
