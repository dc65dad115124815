"""Combinations of choices, the cheapest first."""

from __future__ import annotations

import heapq
from collections.abc import Iterator

Choice = tuple[int, ...]


def cheapest(costs: list[list[float]]) -> Iterator[Choice]:
    """Every combination of indices, in the order of their total cost.

    >>> list(cheapest([[0, 3], [0, 1]]))
    [(0, 0), (0, 1), (1, 0), (1, 1)]
    """
    if not all(costs):
        return
    start: Choice = tuple(0 for _ in costs)
    heap = [(sum(c[0] for c in costs), start)]
    seen = {start}
    while heap:
        total, choice = heapq.heappop(heap)
        yield choice
        for i, index in enumerate(choice):
            if index + 1 == len(costs[i]):
                continue
            following = (*choice[:i], index + 1, *choice[i + 1 :])
            if following not in seen:
                seen.add(following)
                heapq.heappush(heap, (total - costs[i][index] + costs[i][index + 1], following))
