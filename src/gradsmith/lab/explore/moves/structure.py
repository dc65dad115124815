"""Structure that the example has and a random draw would not: broken on purpose, one domain at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import torch

from gradsmith.lab.explore.drawing import broken, domains_of
from gradsmith.lab.explore.move import Kind, Move, shorter
from gradsmith.lab.explore.moves.values import leaf_at, movable
from gradsmith.lab.lab import Lab
from gradsmith.lab.subject.arguments import Arguments


@dataclass(frozen=True)
class Break(Move):
    """Values outside a domain that the example lies in."""

    position: int
    domain: str
    says: str  # the domain's words
    reach: float = 1.0  # how far from the example: it may be that forward is finite near it only
    kind: ClassVar[Kind] = "structure"
    order: ClassVar[int] = 4

    def applied(self, arguments: Arguments, seed: int) -> Arguments | None:
        leaf = leaf_at(arguments, self.position)
        if leaf is None:
            return None
        held = domains_of(leaf.tensor, differentiable=leaf.differentiable, known=leaf.domains)
        domain = next((d for d in held if d.name == self.domain), None)
        if domain is None:
            return None
        generator = torch.Generator().manual_seed(seed)
        other = broken(leaf.tensor.detach(), domain, held, generator, self.reach)
        return None if other is None else arguments.replaced({self.position: other})

    def words(self) -> str:
        return f"where it is not true that '{self.argument}' {self.says}"

    def nearer(self) -> Move | None:
        reach = shorter(self.reach)
        return None if reach is None else replace(self, reach=reach)

    @property
    def assumes(self) -> str:
        return f"'{self.argument}' {self.says}"


def moves(lab: Lab, arguments: Arguments) -> Iterator[Move]:
    for leaf in arguments.leaves:
        if movable(leaf) and not leaf.tensor.is_complex():
            for domain in domains_of(leaf.tensor, differentiable=leaf.differentiable, known=leaf.domains):
                yield Break(leaf.name, leaf.position, domain.name, domain.words)
