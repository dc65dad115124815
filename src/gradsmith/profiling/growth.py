"""The growth law: run at several sizes of each dimension, and see how operations, bytes and saved memory grow.

Counts and bytes are exact, so their exponents are too; time is measured besides. A constant part does not blur the
exponent, because it is taken from differences: with sizes n, 2n, 4n, (c(4n) - c(2n)) / (c(2n) - c(n)) = 2 ** exponent.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from gradsmith.lab.process import device, torch_says
from gradsmith.lab.subject.arguments import Arguments, Leaf
from gradsmith.profiling.bench import Bench
from gradsmith.profiling.events import Recording
from gradsmith.profiling.recorder import record

Dimension = tuple[int, int]  # position of the input, dimension of it
_MOST_GROUPS = 6
_MEASURABLE = 1 << 15  # elements of the largest input from which on kernels, not calls, take the time


@dataclass
class Growth:
    """How the subject grows with one dimension (or with several that must grow together)."""

    label: str
    sizes: list[int]
    recordings: list[Recording] = field(default_factory=list, repr=False)
    seconds: list[float] = field(default_factory=list)
    stopped: str = ""

    def exponent(self, quantity: str) -> float:
        """`forward_ops`, `backward_ops`, `forward_bytes`, `backward_bytes`, `saved_bytes` or `seconds`."""
        if quantity == "seconds":
            return _exponent(self.sizes, self.seconds)
        return _exponent(self.sizes, [_quantity(r, quantity) for r in self.recordings])

    def exponent_of(self, counts: Sequence[float]) -> float:
        return _exponent(self.sizes, counts)

    def to_dict(self) -> dict[str, Any]:
        names = ("forward_ops", "backward_ops", "forward_bytes", "backward_bytes", "saved_bytes")
        curves = {name: [_quantity(r, name) for r in self.recordings] for name in names}
        exponents = {name: round(self.exponent(name), 3) for name in (*names, "seconds")}
        return {
            "dimension": self.label,
            "sizes": self.sizes[: len(self.recordings)],
            **curves,
            "seconds": self.seconds,
            "exponents": exponents,
            "stopped": self.stopped,
        }


def grow(bench: Bench, budget: float, base: Recording) -> list[Growth]:
    """Growth along every dimension that can be varied, within the budget of seconds."""
    clock = device.clock()
    deadline = clock() + budget
    found: list[Growth] = []
    cost = sum(e.seconds for e in base.events) + 2e-5 * len(base.events)
    # Four times the size may cost sixteen times the time; where that does not fit, look downwards.
    factors = (1, 2, 4) if 21 * cost < budget / 4 else (0.25, 0.5, 1)
    for label, dimensions in _groups(bench):
        if clock() > deadline or len(found) == _MOST_GROUPS:
            break
        growth = _along(bench, label, dimensions, factors, deadline)
        if len(growth.recordings) > 1:
            found.append(growth)
    return found


def _along(
    bench: Bench, label: str, dimensions: Sequence[Dimension], factors: Sequence[float], deadline: float
) -> Growth:
    clock = device.clock()
    size = _size(bench.arguments, dimensions[0])
    sizes = sorted({max(1, round(size * f)) for f in factors})
    if len(sizes) < 3:
        sizes = [size, 2 * size, 3 * size]
    growth = Growth(label, sizes)
    for n in sizes:
        try:
            own = bench.with_arguments(resized(bench.arguments, dimensions, n))
            call = own.first()
            start = clock()
            call = own.call()
            call.forward()
            call.between()
            if call.has_backward and not own.forward_only:
                call.backward()
            took = clock() - start
            recording = record(own, deadline)
        except MemoryError:
            growth.stopped = f"out of memory at {label} = {n}"
            break
        except Exception as error:  # the subject does not take this size; the sizes before it stand
            text = str(error).splitlines()[0] if str(error) else type(error).__name__
            growth.stopped = (
                f"out of memory at {label} = {n}"
                if torch_says.out_of_memory(error)
                else f"{label} = {n} does not run: {text}"
            )
            break
        if recording.stopped:
            growth.stopped = f"{label} = {n}: {recording.stopped}"
            break
        growth.recordings.append(recording)
        growth.seconds.append(took)
    growth.sizes = sizes
    return growth


def _groups(bench: Bench) -> Iterator[tuple[str, list[Dimension]]]:
    """Dimensions that can grow alone; those that cannot, with all others of the same size."""
    arguments = bench.arguments
    alone: set[Dimension] = set()
    every = [(leaf, d) for leaf in arguments.leaves for d in range(leaf.tensor.dim()) if leaf.tensor.shape[d] > 1]
    for leaf, d in every:
        if _runs(bench, [(leaf.position, d)]):
            alone.add((leaf.position, d))
            yield _label(leaf, d), [(leaf.position, d)]
    left: dict[int, list[tuple[Leaf, int]]] = {}
    for leaf, d in every:
        left.setdefault(leaf.tensor.shape[d], []).append((leaf, d))
    for group in left.values():
        dimensions = [(leaf.position, d) for leaf, d in group]
        if len(dimensions) > 1 and not set(dimensions) <= alone and _runs(bench, dimensions):
            yield _label(*group[0]), dimensions


def enlarged(bench: Bench, elements: int = _MEASURABLE, seconds: float = 0.05) -> Arguments:
    """Inputs with something to measure: dimensions that can grow are doubled in turns, as long as a run stays short."""
    clock = device.clock()
    arguments = bench.arguments
    growing = [dimensions for _, dimensions in _groups(bench)]
    while growing and max((x.tensor.numel() for x in arguments.leaves), default=elements) < elements:
        dimensions = growing.pop(0)
        larger = resized(arguments, dimensions, 2 * _size(arguments, dimensions[0]))
        start = clock()
        if runs(bench.with_arguments(larger)) and clock() - start < seconds:
            arguments = larger
            growing.append(dimensions)
    return arguments


def runs(bench: Bench) -> bool:
    """Whether forward and backward work on these inputs."""
    try:
        call = bench.first()
        if call.has_backward and not bench.forward_only:
            call.backward()
    except Exception:  # the shapes belong together in another way
        return False
    return call.has_backward or bench.forward_only


def _runs(bench: Bench, dimensions: Sequence[Dimension]) -> bool:
    """Whether the subject works at another size: half of it where that is possible, for speed, else twice."""
    size = _size(bench.arguments, dimensions[0])
    for other in (size // 2, 2 * size) if size > 2 else (size + 1,):
        try:
            arguments = resized(bench.arguments, dimensions, other)
        except Exception:  # a tensor that cannot be cut, e.g. a quantised one
            return False
        if runs(bench.with_arguments(arguments)):
            return True
    return False


def resized(arguments: Arguments, dimensions: Sequence[Dimension], size: int) -> Arguments:
    """The inputs with these dimensions at another size: values are repeated, so that every domain stays valid."""
    tensors: dict[int, Tensor] = {}
    done: dict[int, Tensor] = {}
    for leaf in arguments.leaves:
        wanted = [d for position, d in dimensions if position == leaf.position]
        if not wanted:
            continue
        if id(leaf.tensor) not in done:
            tensor = leaf.tensor.detach()
            for d in wanted:
                index = torch.arange(size, device=tensor.device) % tensor.shape[d]
                tensor = tensor.index_select(d, index)
            done[id(leaf.tensor)] = tensor.requires_grad_(leaf.differentiable)
        tensors[leaf.position] = done[id(leaf.tensor)]
    return arguments.replaced(tensors)


def _size(arguments: Arguments, dimension: Dimension) -> int:
    position, d = dimension
    return next(int(leaf.tensor.shape[d]) for leaf in arguments.leaves if leaf.position == position)


def _label(leaf: Leaf, d: int) -> str:
    return f"{leaf.name}.shape[{d}]"


def _quantity(recording: Recording, name: str) -> float:
    if name == "saved_bytes":
        return recording.saved_bytes
    phase, _, what = name.partition("_")
    if what == "traffic":
        return sum(e.read_bytes + e.written_bytes for e in recording.events if e.phase == phase)
    return recording.count(phase) if what == "ops" else recording.written(phase)  # type: ignore[arg-type]


def _exponent(sizes: Sequence[int], values: Sequence[float]) -> float:
    """The exponent of the part that grows; 0 where nothing does."""
    if len(values) < 2:
        return math.nan
    if len(values) == 2:
        return math.log(max(values[1], 1e-30) / max(values[0], 1e-30)) / math.log(sizes[1] / sizes[0])
    steps = [b - a for a, b in pairwise(values)]
    if steps[0] <= 0 or steps[1] <= 0:
        return 0.0
    # For c + k n^p at three sizes, the ratio of the steps depends on p alone; find p by bisection.
    target = steps[1] / steps[0]
    low, high = 0.01, 6.0
    for _ in range(60):
        p = (low + high) / 2
        a, b, c = (float(s) ** p for s in sizes[:3])
        low, high = (p, high) if (c - b) / (b - a) < target else (low, p)
    return (low + high) / 2
