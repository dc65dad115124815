"""An input scaled and shifted by so much: the step that a search for the other side of a condition ends with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch

from gradsmith.lab.explore.drawing import domains_of, within
from gradsmith.lab.explore.move import Kind, Move
from gradsmith.lab.explore.moves.values import leaf_at
from gradsmith.lab.subject.arguments import Arguments


@dataclass(frozen=True)
class Adjust(Move):
    """`factor * x + shift`, put back into the domain that the example lies in."""

    position: int
    factor: float
    shift: float
    kind: ClassVar[Kind] = "values"
    order: ClassVar[int] = 3
    magnitude: ClassVar[bool] = True

    def applied(self, arguments: Arguments, seed: int) -> Arguments | None:
        leaf = leaf_at(arguments, self.position)
        if leaf is None:
            return None
        before = leaf.tensor.detach()
        held = domains_of(before, differentiable=leaf.differentiable, known=leaf.domains)
        after = before * self.factor + self.shift
        after = within(held, after).to(before) if held else after.to(before)
        return None if torch.equal(after, before) else arguments.replaced({self.position: after})

    def words(self) -> str:
        if self.shift:
            return f"with '{self.argument}' shifted by {self.shift:g}"
        if self.factor < 0:
            return (
                f"with '{self.argument}' times {self.factor:g}"
                if self.factor != -1
                else f"with '{self.argument}' negated"
            )
        if self.factor < 1:
            return f"with '{self.argument}' {1 / self.factor:g} times as small"
        return f"with '{self.argument}' {self.factor:g} times as large"
