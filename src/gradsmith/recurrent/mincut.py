"""The cheapest set of forward values to keep, so that backward can recompute everything else from them.

A minimum cut: values are pipes as wide as they are expensive to keep, and the cut separates what cannot be
recomputed from what backward needs. Among equal cuts the one nearest to backward wins: it recomputes least.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Hashable, Iterable, Mapping
from typing import TypeVar

V = TypeVar("V", bound=Hashable)
SOURCE, SINK = "source", "sink"
_FOREVER = 1 << 60


def cheapest_to_keep(
    cost: Mapping[V, int],
    operands: Mapping[V, Iterable[V]],
    given: Iterable[V],
    needed: Iterable[V],
    again: Mapping[V, int] | None = None,
) -> set[V]:
    """`given` values cannot be recomputed, `needed` ones are read by backward; returns the values to keep.

    `again` is what it costs to recompute a value from its operands, in the unit of `cost`; without it, nothing.
    """
    capacity: dict[Hashable, dict[Hashable, int]] = defaultdict(dict)

    def pipe(a: Hashable, b: Hashable, width: int) -> None:
        capacity[a][b] = capacity[a].get(b, 0) + width
        capacity[b].setdefault(a, 0)

    for value, width in cost.items():
        pipe((value, "in"), (value, "out"), width)
        for operand in operands.get(value, ()):
            if operand in cost:
                pipe((operand, "out"), (value, "in"), _FOREVER)
    for value, work in (again or {}).items():
        if work:
            pipe(SOURCE, (value, "in"), work)
    for value in given:
        pipe(SOURCE, (value, "in"), _FOREVER)
    for value in needed:
        pipe((value, "out"), SINK, _FOREVER)
    while _push(capacity):
        pass
    reaches_sink = _backwards(capacity)
    return {value for value in cost if (value, "out") in reaches_sink and (value, "in") not in reaches_sink}


def _push(capacity: dict[Hashable, dict[Hashable, int]]) -> int:
    """Send as much as one shortest open path carries from source to sink; 0 when none is open."""
    came_from: dict[Hashable, Hashable] = {SOURCE: SOURCE}
    queue: deque[Hashable] = deque([SOURCE])
    while queue and SINK not in came_from:
        here = queue.popleft()
        for there, left in capacity[here].items():
            if left > 0 and there not in came_from:
                came_from[there] = here
                queue.append(there)
    if SINK not in came_from:
        return 0
    path: list[Hashable] = [SINK]
    while path[-1] != SOURCE:
        path.append(came_from[path[-1]])
    edges = list(zip(path[1:], path))
    amount = min(capacity[a][b] for a, b in edges)
    for a, b in edges:
        capacity[a][b] -= amount
        capacity[b][a] += amount
    return amount


def _backwards(capacity: dict[Hashable, dict[Hashable, int]]) -> set[Hashable]:
    incoming: dict[Hashable, list[Hashable]] = defaultdict(list)
    for a, widths in capacity.items():
        for b, left in widths.items():
            if left > 0:
                incoming[b].append(a)
    reached: set[Hashable] = {SINK}
    stack: list[Hashable] = [SINK]
    while stack:
        for before in incoming[stack.pop()]:
            if before not in reached:
                reached.add(before)
                stack.append(before)
    return reached
