"""Predictions from the attribution alone: what would be left of a loop whose iterations ran at once?"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence

from gradsmith.profiling.events import Event
from gradsmith.profiling.machine import Machine

# Operations that exist only because there is a loop: cutting slices out, and putting results together.
_LOOP_ONLY = frozenset(
    {"copy_", "select_backward", "slice_backward", "index_put_", "stack", "cat", "zeros", "empty", "new_zeros"}
    | {"_local_scalar_dense", "zeros_like", "lift_fresh", "scalar_tensor", "fill_", "detach"}
)
# Nodes that put the gradients of the parts together: fill, copy and add, all of it gone with the loop.
_LOOP_NODES = ("SelectBackward", "SliceBackward", "torch::autograd::CopySlices", "CopySlices", "StackBackward")
# Measured on torch 2.13, one thread, 16,384 float32: how many times longer than copying the same bytes.
_DEAR = {"exp": 7.0, "tanh": 21.0, "sigmoid": 6.3, "log": 8.2, "sin": 10.3, "cos": 10.7, "pow": 37.6, "erf": 10.2}

_LONG = 20.0  # times the price of a call: a shorter kernel is mostly start-up, and many of them run better as one


def together(machine: Machine, events: Iterable[Event], kernels: Sequence[float]) -> float:
    """Seconds when every line does the work of all its iterations in one operation.

    A line that takes views to cut its part out takes about as many to line up the whole: each costs a call, and moves
    nothing. A call costs half of what an operation costs with its part of backward. Kernels that take far longer than
    their calls were measured (`kernels`, by event) and take as long when they run at once: large parts gain little.
    """
    groups: dict[tuple[object, ...], list[Event]] = defaultdict(list)
    for e in events:
        if e.op not in _LOOP_ONLY and not e.node.startswith(_LOOP_NODES):
            groups[e.op, e.phase, e.site].append(e)
    total = 0.0
    for (op, _, _), group in groups.items():
        # A line that does the same operation twice per iteration still does it twice when it is vectorised.
        rounds = {tuple(e.iterations.values()) for e in group}
        calls = max(1, round(len(group) / max(1, len(rounds))))
        moved = sum(e.read_bytes + e.written_bytes for e in group)
        flops = sum(e.flops for e in group)
        usual = statistics.median(kernels[e.index] for e in group)
        measured = len(group) * usual if usual > _LONG * machine.observed_op_s else 0.0
        expected = _DEAR.get(str(op), 1.0) * machine.seconds(moved, flops)
        total += calls * machine.graph_op_s / 2 + max(measured, expected)
    return total
