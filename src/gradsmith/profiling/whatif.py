"""Predictions from the attribution alone: what would be left of a loop whose iterations ran at once?"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence

from gradsmith.profiling.events import Event
from gradsmith.profiling.machine import Machine
from gradsmith.source import knowledge as know

# Nodes that put the gradients of the parts together: fill, copy and add, all of it gone with the loop.
_LOOP_NODES = ("SelectBackward", "SliceBackward", "torch::autograd::CopySlices", "CopySlices", "StackBackward")
# Measured on torch 2.13, one thread, 16,384 float32: how many times longer than copying the same bytes.
DEAR = {"exp": 7.0, "tanh": 21.0, "sigmoid": 6.3, "log": 8.2, "sin": 10.3, "cos": 10.7, "pow": 37.6, "erf": 10.2}

# Times what any operation of the run costs while it is observed. Measured (benchmarks/kernels_together.py): from kernels of 4 calls
# on, N times the kernel of one part foretells the whole to 13 % or better, the machine's limits only to a factor 1.1 to 1.8.
# Below that the kernel of a part is mostly start-up, which the whole has once (up to 3 calls: index_put), and the limits are better.
LONG = 4.0
# In the same table: how far off the limits are for shorter kernels (1.1 to 1.8 in the median at most lengths, 3.6 at one), and how far
# the measured kernels are for longer ones.
_LIMITS, _KERNEL = 2.0, 1.13
# How many operations whoever vectorises a loop will need is not known. Rough factors, chosen by looking at the loops of profile_pairs;
# how often the bounds hold is what profile_cases.py prints.
_FEWER, _MORE = 2.0, 2.5


class Estimate(float):
    """A number that was worked out, not measured, and the bounds between which it should come out."""

    low: float
    high: float

    def __new__(cls, value: float, low: float, high: float) -> Estimate:
        self = super().__new__(cls, value)
        self.low, self.high = min(low, value), max(high, value)
        return self

    @staticmethod
    def of(value: float) -> Estimate:
        """As it is: a plain number has no bounds but itself."""
        return value if isinstance(value, Estimate) else Estimate(value, value, value)

    def plus(self, known: float) -> Estimate:
        return Estimate(self + known, self.low + known, self.high + known)


def together(machine: Machine, events: Iterable[Event], kernels: Sequence[float], is_long: Sequence[bool]) -> Estimate:
    """Seconds when every line does the work of all its iterations in one operation.

    A line that takes views to cut its part out takes about as many to line up the whole: each costs a call, and moves
    nothing. A call costs half of what an operation costs with its part of backward. Kernels that take far longer than
    a call (`is_long`, by event) were measured (`kernels`) and take as long when they run at once: large parts gain little.
    Of shorter ones the start-up remains, once.
    """
    groups: dict[tuple[object, ...], list[Event]] = defaultdict(list)
    for e in events:
        if e.op not in know.LOOP_ONLY and not e.node.startswith(_LOOP_NODES):
            groups[e.op, e.phase, e.site].append(e)
    total = low = high = 0.0
    for (op, _, _), group in groups.items():
        # A line that does the same operation twice per iteration still does it twice when it is vectorised.
        rounds = {tuple(e.iterations.values()) for e in group}
        times = max(1, round(len(group) / max(1, len(rounds))))
        calls = times * machine.graph_op_s / 2
        moved = sum(e.read_bytes + e.written_bytes for e in group)
        flops = sum(e.flops for e in group)
        usual = statistics.median(kernels[e.index] for e in group)
        measured = len(group) * usual
        expected = DEAR.get(str(op), 1.0) * machine.seconds(moved, flops)
        if 2 * sum(is_long[e.index] for e in group) > len(group):
            foretold = max(measured, expected)
            least, most = min(expected, measured), _KERNEL * foretold
        else:
            start_up = times * usual
            foretold = expected + start_up
            least, most = expected / _LIMITS, _LIMITS * expected + start_up
        total += calls + foretold
        low += calls / _FEWER + least
        high += calls * _MORE + most
    return Estimate(total, low, high)
