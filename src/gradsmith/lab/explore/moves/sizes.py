"""Other sizes that satisfy the size relations: more than one, primes, multiples, non-square; none and many where it is cheap."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from gradsmith.lab.explore.move import Kind, Move
from gradsmith.lab.explore.questions import overwritten_by
from gradsmith.lab.explore.sizes import Size, parted_sizes, resized, sizes
from gradsmith.lab.lab import Lab
from gradsmith.lab.subject.arguments import Arguments
from gradsmith.lab.subject.foreign import runs_kernels

_MANY = 300
_CHEAP = 1 << 16  # elements of all inputs together, at that size


@dataclass(frozen=True)
class Resize(Move):
    """One free size of the example, and all that belongs to it, at another value."""

    size: Size
    to: int
    kind: ClassVar[Kind] = "size"
    order: ClassVar[int] = 1

    def applied(self, arguments: Arguments, seed: int) -> Arguments | None:
        after = resized(arguments, self.size, self.to, seed)
        return None if _repeats(arguments, after) else after

    def words(self) -> str:
        return f"with size {self.size.dims[0][2] * self.to} in dim {self.size.dims[0][1]} of '{self.argument}'"


@dataclass(frozen=True)
class Empty(Resize):
    """No element at all: foreign code may crash on it."""

    risky: ClassVar[bool] = True

    def words(self) -> str:
        return f"with size 0 in dim {self.size.dims[0][1]} of '{self.argument}'"


@dataclass(frozen=True)
class LargerSize(Resize):
    """Larger than another size that equals it in the example: where forward asks only that it is no smaller, or where both
    are 1, which broadcasting allows and a batch rarely is."""

    other: str  # what it equals in the example
    kind: ClassVar[Kind] = "structure"

    @property
    def assumes(self) -> str:
        return f"dim {self.size.dims[0][1]} of '{self.argument}' equals {self.other}"


def _repeats(before: Arguments, after: Arguments) -> bool:
    """Ids that were all different no longer are: that is a step of another kind."""
    ids = [(a.tensor, b.tensor) for a, b in zip(before.leaves, after.leaves) if _is_index(a.tensor)]
    return any(a.numel() > 1 and _all_different(a) and not _all_different(b) for a, b in ids)


def _is_index(tensor: Tensor) -> bool:
    return not (tensor.is_floating_point() or tensor.is_complex() or tensor.dtype == torch.bool)


def _all_different(tensor: Tensor) -> bool:
    return bool(tensor.unique().numel() == tensor.numel())


def moves(lab: Lab, arguments: Arguments) -> Iterator[Move]:
    """For each free size a few others, the most telling first, one size after the other."""
    names = {leaf.position: leaf.name for leaf in arguments.leaves}
    scattered = overwritten_by(lab.tape, arguments.leaves)
    single = {leaf.position for leaf in arguments.leaves if leaf.tensor.numel() == 1} & set(scattered)
    # One place that is written to would become several, all of them the same: that is a step of another kind.
    free = [size for size in sizes(lab) if not single & {position for position, _, _ in size.dims}]
    together = list(_ones_together(free, _batch_of_one(lab, arguments)))
    found = [(size, list(_others(lab, arguments, size))) for size in [*together, *free]]
    for turn in range(max((len(others) for _, others in found), default=0)):
        for size, others in found:
            if turn < len(others):
                name = names[size.dims[0][0]]
                beside = _left_behind(size, together, names) if others[turn] else ""
                if beside:
                    yield LargerSize(name, size, others[turn], beside)
                else:
                    yield (Empty if others[turn] == 0 else Resize)(name, size, others[turn])
    for size in parted_sizes(lab):
        if size.beside is not None:
            position, dim = size.beside
            other = f"dim {dim} of '{names[position]}'"
            yield LargerSize(names[size.dims[0][0]], size, size.least, other)


def _ones_together(free: list[Size], batch: Size | None) -> Iterator[Size]:
    """A batch of 1 is one in every input, whatever broadcasting allows: they grow together, too, and so do all ones."""
    ones = [size for size in free if size.value == 1 and size.learned != "broadcast"]
    dims = dict.fromkeys(dim for size in [*([batch] if batch else []), *ones] for dim in size.dims)
    if batch is not None:
        yield batch
    if len(ones) > 1 and (batch is None or set(dims) != set(batch.dims)):
        yield Size(1, tuple(dims), learned="together")


def _batch_of_one(lab: Lab, arguments: Arguments) -> Size | None:
    """The leading sizes of 1, where forward takes a larger batch: tracing takes a size of 1 for a constant."""
    leading = [(x.position, 0, 1) for x in arguments.leaves if x.tensor.ndim and x.tensor.shape[0] == 1]
    if len(leading) < 2:
        return None
    batch = Size(1, tuple(leading), learned="together")
    try:
        lab.precise_run(resized(arguments, batch, 3, lab.settings.seed))
    except Exception:  # they are no batch
        return None
    return batch


def _left_behind(size: Size, together: list[Size], names: dict[int, str]) -> str:
    """A size of 1 in another input that does not grow with this one; "" where there is none."""
    own = {position for position, _, _ in size.dims}
    for group in together:
        others = [dim for dim in group.dims if dim[0] not in own]
        if set(size.dims) < set(group.dims) and others:
            position, dim, _ = others[0]
            return f"dim {dim} of '{names[position]}'"
    return ""


def _others(lab: Lab, arguments: Arguments, size: Size) -> Iterator[int]:
    step = size.multiple_of
    if size.learned == "broadcast":
        yield step
        return
    wanted = [(3 if size.value != 3 * step else 5) * step, step, 2 * step]
    wanted[1:1] = [n * step for n in _beyond_blocks(lab)]
    wanted.append(_MANY - _MANY % step)
    if lab.empty:
        wanted.append(0)
    for n in dict.fromkeys(wanted):
        small = n <= size.value or _elements(arguments, size, n) <= _CHEAP
        if n != size.value and (n >= size.least or n == 0) and small:
            yield n


def _beyond_blocks(lab: Lab) -> list[int]:
    """For kernels: one more than their smallest block, so that a second program has one element; and three blocks begun."""
    if not runs_kernels(lab.target):
        return []
    from gradsmith.lab.triton.events import LOGS

    blocks = [b for traffic in LOGS[0].traffic.values() for b in traffic.blocks if b < _MANY]
    return [min(blocks) + 1, 2 * min(blocks) + 3] if blocks else []


def _elements(arguments: Arguments, size: Size, to: int) -> int:
    """How many numbers all inputs have together at another size."""
    shapes = {leaf.position: list(leaf.tensor.shape) for leaf in arguments.leaves}
    for position, dim, times in size.dims:
        shapes[position][dim] = times * to
    return sum(math.prod(shape) for shape in shapes.values())
