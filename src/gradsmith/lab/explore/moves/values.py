"""Other values of the same structure: redrawn, scaled, negated, shifted, tied, zero.

None of these leaves a domain that the example lies in (`domains.py`): what a step makes is put back into it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor

from gradsmith.lab.explore.drawing import between, domains_of, redrawn, within
from gradsmith.lab.explore.move import Kind, Move, shorter
from gradsmith.lab.lab import Lab
from gradsmith.lab.subject.arguments import Arguments, Leaf

_LARGE = 1e4  # its square and its exponential's argument are where float32 begins to overflow


@dataclass(frozen=True)
class Redraw(Move):
    """Other numbers from the same domain, as large as those of the example."""

    position: int
    reach: float = 1.0  # how far from the example: it may be that forward is finite near it only
    kind: ClassVar[Kind] = "values"
    order: ClassVar[int] = 2

    def applied(self, arguments: Arguments, seed: int) -> Arguments | None:
        leaf = leaf_at(arguments, self.position)
        if leaf is None:
            return None
        x = leaf.tensor.detach()
        other = redrawn(x, x.shape, _generator(seed), differentiable=leaf.differentiable, known=leaf.domains)
        if self.reach != 1.0 and x.is_floating_point():
            held = domains_of(x, differentiable=leaf.differentiable, known=leaf.domains)
            other = within(held, between(x, other, self.reach)).to(x)
        return arguments.replaced({self.position: other})

    def nearer(self) -> Move | None:
        reach = shorter(self.reach)
        return None if reach is None else replace(self, reach=reach)

    def words(self) -> str:
        return f"with other values of '{self.argument}'"


@dataclass(frozen=True)
class Transform(Move):
    """The numbers of the example, changed in one of the ways of `WAYS`."""

    position: int
    way: str
    kind: ClassVar[Kind] = "values"
    order: ClassVar[int] = 3

    def applied(self, arguments: Arguments, seed: int) -> Arguments | None:
        leaf = leaf_at(arguments, self.position)
        if leaf is None:
            return None
        before = leaf.tensor.detach()
        after = WAYS[self.way].change(before, _generator(seed))
        if after is None:
            return None
        if before.is_floating_point():
            held = domains_of(before, differentiable=leaf.differentiable, known=leaf.domains)
            after = within(held, after).to(before) if held else after.to(before)
        if torch.equal(after, before):
            return None
        return arguments.replaced({self.position: after})

    def words(self) -> str:
        return f"with {WAYS[self.way].words.format(x=self.argument)}"


@dataclass(frozen=True)
class Magnify(Transform):
    """The same numbers, so much larger that a computation may overflow."""

    magnitude: ClassVar[bool] = True


@dataclass(frozen=True)
class Coincide(Transform):
    """Exact zeros or equal numbers, which random numbers never are: a corner, or a point that forward treats apart."""

    kind: ClassVar[Kind] = "structure"

    @property
    def assumes(self) -> str:
        return WAYS[self.way].otherwise.format(x=self.argument)


@dataclass(frozen=True)
class Way:
    words: str
    change: Callable[[Tensor, torch.Generator], Tensor | None]
    kind: type[Transform] = Transform
    otherwise: str = ""  # what holds of inputs that are never so


def _real(change: Callable[[Tensor], Tensor | None]) -> Callable[[Tensor, torch.Generator], Tensor | None]:
    return lambda x, generator: change(x)


def _zero_row(x: Tensor) -> Tensor | None:
    if not x.ndim or x.shape[-1] < 2:
        return None
    other = x.clone()
    other[(0,) * (x.ndim - 1)] = 0
    return other


def _ties(x: Tensor) -> Tensor | None:
    if not x.ndim or x.shape[-1] < 2 or x.is_complex():
        return None
    order = x.sort(-1).values
    largest = torch.where(x == order[..., -2:-1], order[..., -1:], x)
    return torch.where(largest == order[..., :1], order[..., 1:2], largest) if x.shape[-1] > 3 else largest


def _ends(x: Tensor) -> Tensor | None:
    """The ends of the unit interval, for numbers that lie in it."""
    if x.is_complex() or x.numel() < 3 or not bool(((x >= 0) & (x <= 1)).all()):
        return None
    other = x.clone(memory_format=torch.contiguous_format)
    other.view(-1)[0], other.view(-1)[-1] = 1.0, 0.0
    return other


def _shifted(x: Tensor, sign: float) -> Tensor:
    width = float(x.detach().abs().double().square().mean().sqrt()) or 1.0
    return x + sign * 2 * max(width, 1.0)


def _reversed(x: Tensor) -> Tensor | None:
    return x.flip(-1) if x.ndim and x.shape[-1] > 1 else None


WAYS = {
    "large": Way("'{x}' 30 times as large", _real(lambda x: x * 30), Magnify),
    "small": Way("'{x}' 1000 times as small", _real(lambda x: x * 1e-3)),
    "negated": Way("'{x}' negated", _real(lambda x: -x)),
    "up": Way("'{x}' shifted up", _real(lambda x: _shifted(x, 1)), Magnify),
    "down": Way("'{x}' shifted down", _real(lambda x: _shifted(x, -1)), Magnify),
    "reversed": Way("'{x}' in reverse order", _real(_reversed)),
    "ties": Way("a tie in '{x}'", _real(_ties), Coincide, "'{x}' has no ties"),
    "zero row": Way("a row of zeros in '{x}'", _real(_zero_row), Coincide, "'{x}' has no row of zeros"),
    "ends": Way("a 1 and a 0 in '{x}'", _real(_ends)),
    "zeros": Way("nothing but zeros in '{x}'", _real(torch.zeros_like), Coincide, "'{x}' is not all zero"),
    "huge": Way(
        f"'{{x}}' as large as {_LARGE:g}", _real(lambda x: x * (_LARGE / (float(x.abs().max()) or 1.0))), Magnify
    ),
}


def moves(lab: Lab, arguments: Arguments) -> Iterator[Move]:
    """All steps for all floating inputs, the most telling first, one input after the other for each way."""
    leaves = [x for x in arguments.leaves if movable(x)]
    yield from (Redraw(x.name, x.position) for x in leaves)
    for way in WAYS:
        yield from (WAYS[way].kind(x.name, x.position, way) for x in leaves if x.tensor.numel() > 1)


def movable(leaf: Leaf) -> bool:
    tensor = leaf.tensor
    plain = tensor.is_floating_point() or tensor.is_complex()
    return (
        plain and tensor.layout == torch.strided and tensor.numel() > 0 and type(tensor).__module__.startswith("torch")
    )


def leaf_at(arguments: Arguments, position: int) -> Leaf | None:
    return next((x for x in arguments.leaves if x.position == position), None)


def _generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)
