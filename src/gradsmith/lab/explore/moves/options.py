"""Other options: values that the source names, flags, None, train and eval, numbers we invent, and who requires grad."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from gradsmith.lab.explore.defaults import names_of
from gradsmith.lab.explore.move import Kind, Move
from gradsmith.lab.explore.moves.option_values import Source, beside, invented, named, nearby, source_of
from gradsmith.lab.explore.questions import looked_at
from gradsmith.lab.lab import Lab
from gradsmith.lab.run import forward
from gradsmith.lab.subject.arguments import Arguments, Leaf
from gradsmith.lab.subject.binding import TRAINING, other_mode
from gradsmith.lab.subject.foreign import foreign
from gradsmith.source.literals import Scalar
from gradsmith.source.options import takes_none

Number = (int, float)


@dataclass(frozen=True)
class SetOption(Move):
    """Another value at a position of `arguments.flat`; `because` says where it comes from."""

    position: int
    value: Scalar
    because: str
    order: ClassVar[int] = 0

    def applied(self, arguments: Arguments, seed: int) -> Arguments | None:
        now = arguments.flat[self.position]
        unchanged = type(now) is type(self.value) and now == self.value
        return None if unchanged else _with(arguments, self.position, self.value)

    def words(self) -> str:
        return f"with `{self.argument}={self.value!r}`"


@dataclass(frozen=True)
class NamedOption(SetOption):
    """A value that the source names, or torch for it."""

    kind: ClassVar[Kind] = "named option"


@dataclass(frozen=True)
class InventedOption(SetOption):
    """A value that nobody named."""

    kind: ClassVar[Kind] = "invented option"


@dataclass(frozen=True)
class OtherNumber(SetOption):
    """A number of the same sign and magnitude."""

    kind: ClassVar[Kind] = "values"


@dataclass(frozen=True)
class LeaveOut(Move):
    """None for an argument that may be left out."""

    position: int
    kind: ClassVar[Kind] = "named option"
    order: ClassVar[int] = 0

    def applied(self, arguments: Arguments, seed: int) -> Arguments | None:
        return None if arguments.flat[self.position] is None else _with(arguments, self.position, None)

    def words(self) -> str:
        return f"with `{self.argument}=None`"


@dataclass(frozen=True)
class TrainMode(Move):
    """A module after `train()` or `eval()`: the subject itself, or a copy of one among the arguments."""

    position: int
    training: bool
    kind: ClassVar[Kind] = "named option"
    order: ClassVar[int] = 0

    def applied(self, arguments: Arguments, seed: int) -> Arguments | None:
        now = arguments.flat[self.position]
        if not isinstance(now, nn.Module):
            return None if now is self.training else _with(arguments, self.position, self.training)
        return None if now.training is self.training else _with(arguments, self.position, other_mode(now))

    def words(self) -> str:
        return f"after `{'train' if self.training else 'eval'}()`"


@dataclass(frozen=True)
class AsTensor(Move):
    """A Python number as a tensor without dimensions."""

    position: int
    kind: ClassVar[Kind] = "invented option"
    order: ClassVar[int] = 0

    def applied(self, arguments: Arguments, seed: int) -> Arguments | None:
        now = arguments.flat[self.position]
        if type(now) not in Number:
            return None
        kinds = [leaf.tensor.dtype for leaf in arguments.leaves if leaf.tensor.is_floating_point()]
        dtype = torch.int64 if isinstance(now, int) else next(iter(kinds), torch.get_default_dtype())
        return _with(arguments, self.position, torch.tensor(now, dtype=dtype), self.argument)

    def words(self) -> str:
        return f"with '{self.argument}' as a tensor without dimensions"


@dataclass(frozen=True)
class AsNumber(Move):
    """A tensor without dimensions as a Python number."""

    position: int
    kind: ClassVar[Kind] = "invented option"
    order: ClassVar[int] = 0

    def applied(self, arguments: Arguments, seed: int) -> Arguments | None:
        now = arguments.flat[self.position]
        single = isinstance(now, Tensor) and now.ndim == 0
        return _with(arguments, self.position, now.detach().item()) if single else None

    def words(self) -> str:
        return f"with '{self.argument}' as a Python number"


@dataclass(frozen=True)
class RequireGrad(Move):
    """A tensor whose gradient nobody asked for in the example."""

    position: int
    kind: ClassVar[Kind] = "requires grad"
    order: ClassVar[int] = 5

    def applied(self, arguments: Arguments, seed: int) -> Arguments | None:
        now = [leaf for leaf in arguments.leaves if leaf.position == self.position and not leaf.differentiable]
        if not now:
            return None
        same = {x.position for x in arguments.leaves if x.tensor is now[0].tensor}  # one tensor, passed twice
        return arguments.only({leaf.position for leaf in arguments.differentiable} | same)

    def words(self) -> str:
        return f"with '{self.argument}' requiring grad"


def moves(lab: Lab, arguments: Arguments) -> Iterator[Move]:
    """Every other option to try, the surest first; `arguments` as `with_defaults` gives them."""
    names = list(enumerate(arguments.names(names_of(lab.target))))
    source = source_of(lab.target)
    for position, name in names:
        yield from _named(arguments, position, name, source)
    for position, name in names:
        yield from _without(arguments, position, name, source)
        yield from _trained(arguments, position, name)
    # Other numbers make a kernel read elsewhere, which nothing checks.
    if lab.isolated or not foreign(lab):
        for position, name in names:
            yield from (
                OtherNumber(name, position, other, "the same sign and magnitude")
                for other in nearby(arguments.flat[position])
            )
        for position, name in names:
            yield from _invented(arguments, position, name, source)
    looked = looked_at(lab.tape)
    for leaf in arguments.leaves:
        floating = leaf.tensor.is_floating_point() or leaf.tensor.is_complex()
        if floating and not leaf.differentiable and leaf.position in looked:
            yield RequireGrad(leaf.name, leaf.position)


def changes_only_gradients(lab: Lab, before: Arguments, after: Arguments) -> bool:
    """Whether forward gives bit-equal outputs for both, under the same seed: what differs then is only the gradient."""
    target = lab.precise[0]
    try:
        a, b = (forward(target, each, seed=lab.settings.seed).outputs for each in (before, after))
    except Exception:  # the subject rejects one of them
        return False
    return len(a) == len(b) and all(_equal(x.detach(), y.detach()) for x, y in zip(a, b))


def _named(arguments: Arguments, position: int, name: str, source: Source | None) -> Iterator[Move]:
    value = arguments.flat[position]
    if name == TRAINING or isinstance(value, Tensor):
        return
    told: set[tuple[type, Scalar]] = set()
    for other, because in _all_named(arguments, position, name, source):
        key = type(other), other
        if other is not None and key not in told and (type(other) is not type(value) or other != value):
            told.add(key)
            yield NamedOption(name, position, other, because)


def _all_named(arguments: Arguments, position: int, name: str, source: Source | None) -> Iterator[tuple[Scalar, str]]:
    value = arguments.flat[position]
    yield from named(value, name, source)
    yield from beside(value, name, source, _rank(arguments))


def _without(arguments: Arguments, position: int, name: str, source: Source | None) -> Iterator[Move]:
    alone = [leaf.position for leaf in arguments.differentiable] == [position]
    absent = arguments.flat[position] is None
    if source is not None and not alone and not absent and takes_none(source, name):
        yield LeaveOut(name, position)


def _trained(arguments: Arguments, position: int, name: str) -> Iterator[Move]:
    value = arguments.flat[position]
    if isinstance(value, nn.Module):
        yield TrainMode(name, position, not value.training)
    elif name == TRAINING:
        yield TrainMode(name, position, not value)


def _invented(arguments: Arguments, position: int, name: str, source: Source | None) -> Iterator[Move]:
    value = arguments.flat[position]
    known = {(type(other), other) for other, _ in _all_named(arguments, position, name, source)}
    for other in invented(value, name, source, _rank(arguments)):
        if (type(other), other) not in known:
            yield InventedOption(name, position, other, "nobody named it")
    if type(value) in Number:
        yield AsTensor(name, position)
    elif isinstance(value, Tensor) and value.ndim == 0 and len(arguments.differentiable) > 1:
        yield AsNumber(name, position)


def _rank(arguments: Arguments) -> int:
    return max((leaf.tensor.ndim for leaf in arguments.leaves), default=0)


def _with(arguments: Arguments, position: int, value: Any, name: str = "") -> Arguments:
    flat = [value if i == position else v for i, v in enumerate(arguments.flat)]
    leaves = [leaf for leaf in arguments.leaves if leaf.position != position]
    if isinstance(value, Tensor):
        leaves = sorted([*leaves, Leaf(name, position, value, False)], key=lambda leaf: leaf.position)
    return Arguments(flat, arguments.spec, leaves)


def _equal(a: Tensor, b: Tensor) -> bool:
    """Bit for bit, NaN equal to NaN."""
    return a.shape == b.shape and a.dtype == b.dtype and bool(((a == b) | ((a != a) & (b != b))).all())
