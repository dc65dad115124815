"""Other ids and other masks: repeats, gaps, another order, negative ones, those that forward compares with; empty rows."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from gradsmith.lab.explore.drawing import UNLIKELY
from gradsmith.lab.explore.move import Kind, Move
from gradsmith.lab.explore.moves.values import leaf_at
from gradsmith.lab.explore.questions import bounds_of_ids, compared, overwritten_by
from gradsmith.lab.lab import Lab
from gradsmith.lab.subject.arguments import Arguments, Leaf

_IDS = (torch.int64, torch.int32, torch.int16, torch.uint8, torch.int8)


@dataclass(frozen=True)
class _Ids(Move):
    position: int
    way: str
    number: int = 0
    kind: ClassVar[Kind] = "ids"
    order: ClassVar[int] = 3
    addresses: ClassVar[bool] = True

    def applied(self, arguments: Arguments, seed: int) -> Arguments | None:
        leaf = leaf_at(arguments, self.position)
        if leaf is None or not leaf.tensor.numel():
            return None
        before = leaf.tensor.detach()
        after = _changed(before.clone(memory_format=torch.contiguous_format), self.way, self.number, seed)
        if after is None or torch.equal(before, after):
            return None
        return arguments.replaced({self.position: after})

    def words(self) -> str:
        return f"with {_WORDS[self.way].format(x=self.argument, n=self.number)}"


@dataclass(frozen=True)
class ChangeIds(_Ids):
    """Ids that the example lacks by accident."""


@dataclass(frozen=True)
class BreakIds(_Ids):
    """Ids without a property that the example hardly has by accident."""

    kind: ClassVar[Kind] = "structure"

    @property
    def assumes(self) -> str:
        return f"'{self.argument}' {_PROPERTIES[self.way]}"


@dataclass(frozen=True)
class NamedId(_Ids):
    """An id that forward compares with: a label to be ignored, padding, a bound."""

    kind: ClassVar[Kind] = "named option"


@dataclass(frozen=True)
class ChangeMask(_Ids):
    """Another mask: to be another one is what a mask is there for."""

    kind: ClassVar[Kind] = "values"


_WORDS = {
    "repeat": "a repeated index in '{x}'",
    "gap": "an index that does not occur in '{x}'",
    "shuffle": "'{x}' in another order",
    "number": "{n} in '{x}'",
    "negative": "-1 in '{x}'",
    "redraw": "other values of '{x}'",
    "all": "'{x}' all True",
    "none": "'{x}' all False",
    "empty row": "a row of '{x}' all False",
    "mixed": "True and False in '{x}'",
}
_PROPERTIES = {
    "repeat": "has no id twice",
    "gap": "leaves out no id",
    "shuffle": "is sorted",
    "negative": "holds no negative id",
}


def _changed(ids: Tensor, way: str, number: int, seed: int) -> Tensor | None:
    generator = torch.Generator().manual_seed(seed)
    flat = ids.view(-1)
    if ids.dtype == torch.bool:
        return _masked(ids, way, generator)
    if way == "repeat":
        flat[1] = flat[0]
    elif way == "gap":
        known = flat.unique()
        flat[flat == known[len(known) // 2]] = known[0]
    elif way == "shuffle":
        ids = ids[..., torch.randperm(ids.shape[-1], generator=generator)].contiguous()
    elif way == "redraw":
        ids = flat[torch.randint(flat.numel(), (flat.numel(),), generator=generator)].reshape(ids.shape)
    elif way in ("negative", "number"):
        flat[-1] = number
    return ids


def _masked(mask: Tensor, way: str, generator: torch.Generator) -> Tensor | None:
    if way == "mixed":
        return torch.rand(mask.shape, generator=generator).to(mask.device) < 0.6
    if way == "empty row":
        if mask.ndim < 1:
            return None
        mask[(0,) * max(mask.ndim - 1, 1) if mask.ndim > 1 else slice(None)] = False
        return mask
    return torch.full_like(mask, way == "all")


def moves(lab: Lab, arguments: Arguments) -> Iterator[Move]:
    asked = compared(lab.tape, arguments.leaves)
    scattered = overwritten_by(lab.tape, arguments.leaves)
    bounds = bounds_of_ids(lab.tape, arguments.leaves)
    for leaf in arguments.leaves:
        if leaf.tensor.dtype == torch.bool and leaf.tensor.numel() > 1:
            for way in ("mixed", "empty row", "all", "none"):
                yield ChangeMask(leaf.name, leaf.position, way)
        elif leaf.tensor.dtype in _IDS and leaf.tensor.numel() > 1:
            for number in dict.fromkeys((*asked.numbers.get(leaf.position, ()), *bounds.get(leaf.position, ()))):
                yield NamedId(leaf.name, leaf.position, "number", number)
            added = leaf.position in asked.accumulated
            yield from _of_ids(leaf, repeats=leaf.position not in scattered, accumulated=added)


def _of_ids(leaf: Leaf, *, repeats: bool, accumulated: bool) -> Iterator[Move]:
    flat = leaf.tensor.detach().reshape(-1).cpu()
    span = int(flat.max() - flat.min()) + 1
    unique = flat.unique().numel() == flat.numel()
    permutation = unique and span == flat.numel()
    if unique and repeats:
        # That each of so many occurs once is what makes a permutation, however few they are; but not of what is added up.
        no_accident = _unique_by_chance(flat.numel(), span) < UNLIKELY or (permutation and span > 2)
        no_accident = no_accident and not accumulated
        yield (BreakIds if no_accident else ChangeIds)(leaf.name, leaf.position, "repeat")
    if (unique and not permutation) or not unique:
        covered = flat.unique().numel() == span and span > 2
        if covered and repeats:
            no_accident = _covered_by_chance(flat.numel(), span) < UNLIKELY
            yield (BreakIds if no_accident else ChangeIds)(leaf.name, leaf.position, "gap")
    ordered = leaf.tensor.ndim > 0 and bool((leaf.tensor.diff(dim=-1) >= 0).all()) and flat.unique().numel() > 1
    no_accident = ordered and _sorted_by_chance(leaf.tensor) < UNLIKELY
    yield (BreakIds if no_accident else ChangeIds)(leaf.name, leaf.position, "shuffle")
    if not unique and repeats:
        yield ChangeIds(leaf.name, leaf.position, "redraw")
    if int(flat.min()) >= 0:
        yield BreakIds(leaf.name, leaf.position, "negative", -1)


def _unique_by_chance(count: int, span: int) -> float:
    return math.prod(1 - k / span for k in range(count)) if span >= count else 0.0


def _covered_by_chance(count: int, span: int) -> float:
    if span > 60:
        return 0.0
    return math.fsum((-1.0) ** k * math.comb(span, k) * (1 - k / span) ** count for k in range(span + 1))


def _sorted_by_chance(ids: Tensor) -> float:
    """How many orders of each row look the same as this one, over all orders."""
    rows = ids.detach().reshape(-1, ids.shape[-1])
    chance = 0.0
    for row in rows[:64]:
        counts = row.unique(return_counts=True)[1].tolist()
        chance += sum(math.lgamma(c + 1) for c in counts) - math.lgamma(len(row) + 1)
    return math.exp(chance)
