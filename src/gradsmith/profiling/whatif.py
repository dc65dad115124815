"""Predictions from the attribution alone: what would be left of a loop whose iterations ran at once?"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from gradsmith.profiling.events import Event
from gradsmith.profiling.machine import Machine

# Operations that exist only because there is a loop: cutting slices out, and putting results together.
_LOOP_ONLY = frozenset(
    {"copy_", "select_backward", "slice_backward", "index_put_", "stack", "cat", "zeros", "empty", "new_zeros"}
    | {"_local_scalar_dense", "zeros_like", "lift_fresh", "scalar_tensor", "fill_", "detach"}
)
# Measured on torch 2.13, one thread, 16,384 float32: how many times longer than copying the same bytes.
_DEAR = {"exp": 7.0, "tanh": 21.0, "sigmoid": 6.3, "log": 8.2, "sin": 10.3, "cos": 10.7, "pow": 37.6, "erf": 10.2}
_CALL = (
    2.5  # user code and the graph around a call, against a bare call; chosen on benchmarks/profile_pairs, not measured
)


def together(machine: Machine, events: Iterable[Event]) -> float:
    """Seconds when every line does the work of all its iterations in one operation."""
    groups: dict[tuple[object, ...], list[Event]] = defaultdict(list)
    for e in events:
        if not e.is_view and e.op not in _LOOP_ONLY:
            groups[e.op, e.phase, e.site].append(e)
    total = 0.0
    for (op, _, _), group in groups.items():
        # A line that does the same operation twice per iteration still does it twice when it is vectorised.
        rounds = {tuple(e.iterations.values()) for e in group}
        calls = max(1, round(len(group) / max(1, len(rounds))))
        moved = sum(e.read_bytes + e.written_bytes for e in group)
        flops = sum(e.flops for e in group)
        total += calls * _CALL * machine.op_s + _DEAR.get(str(op), 1.0) * machine.seconds(moved, flops)
    return total
