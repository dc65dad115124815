"""The growth law: run at several sizes of each dimension, and see how operations, bytes and saved memory grow.

Counts and bytes are exact, so their exponents are too; time is measured besides. A constant part does not blur the
exponent, because it is taken from differences: with sizes n, 2n, 4n, (c(4n) - c(2n)) / (c(2n) - c(n)) = 2 ** exponent.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice, pairwise
from typing import Any

from gradsmith.lab.explore.sizes import Size, free_sizes, resized
from gradsmith.lab.process import device, torch_says
from gradsmith.lab.subject.arguments import Arguments
from gradsmith.profiling.bench import Bench
from gradsmith.profiling.events import Recording
from gradsmith.profiling.recorder import record

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
    free = _growing(bench)
    first = list(
        islice(free, 1)
    )  # PyTorch is asked about sizes here, and imports its compiler for it: not on the budget
    clock = device.clock()
    deadline = clock() + budget
    found: list[Growth] = []
    cost = sum(e.seconds for e in base.events) + 2e-5 * len(base.events)
    # Four times the size may cost sixteen times the time; where that does not fit, look downwards.
    factors = (1, 2, 4) if 21 * cost < budget / 4 else (0.25, 0.5, 1)
    for size in chain(first, free):
        if clock() > deadline or len(found) == _MOST_GROUPS:
            break
        growth = _along(bench, size, factors, deadline)
        if len(growth.recordings) > 1:
            found.append(growth)
    return found


def _along(bench: Bench, size: Size, factors: Sequence[float], deadline: float) -> Growth:
    clock = device.clock()
    position, dim, times = size.dims[0]
    name = next(leaf.name for leaf in bench.arguments.leaves if leaf.position == position)
    label, step = f"{name}.shape[{dim}]", size.multiple_of
    values = sorted({max(size.least, step * round(size.value * f / step)) for f in factors})
    if len(values) < 3:
        values = [size.value, 2 * size.value, 3 * size.value]
    sizes = [times * value for value in values]
    growth = Growth(label, sizes)
    for value, n in zip(values, sizes):
        try:
            own = bench.with_arguments(resized(bench.arguments, size, value, bench.seed))
            call = own.first()
            start = clock()
            call = own.call()
            call.forward()
            call.between()
            if call.has_backward and not own.forward_only:
                call.backward()
            took = clock() - start
            recording = record(own, max(0.0, deadline - clock()))
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


def _growing(bench: Bench) -> Iterator[Size]:
    """The free sizes, as forward and backward confirm them; what is 1 is mostly left so, and is no size to begin with."""
    found = free_sizes(bench.target, bench.arguments, bench.seed, lambda other: runs(bench.with_arguments(other)))
    return (size for size in found if size.value > 1)


def enlarged(bench: Bench, elements: int = _MEASURABLE, seconds: float = 0.05) -> Arguments:
    """Inputs with something to measure: sizes that can grow are doubled in turns, as long as a run stays short."""
    clock = device.clock()
    arguments = bench.arguments
    growing = list(_growing(bench))
    while growing and max((x.tensor.numel() for x in arguments.leaves), default=elements) < elements:
        size = growing.pop(0)
        larger = resized(arguments, size, 2 * size.value, bench.seed)
        start = clock()
        if runs(bench.with_arguments(larger)) and clock() - start < seconds:
            arguments = larger
            growing.append(replace(size, value=2 * size.value))
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
