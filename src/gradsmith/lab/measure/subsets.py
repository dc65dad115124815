"""Which inputs require grad: the subsets worth trying."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

from gradsmith.lab.subject.arguments import Leaf


def proper_subsets(leaves: Sequence[Leaf]) -> Iterator[set[int]]:
    """Every non-empty proper subset of up to four inputs; beyond that, single inputs and leave-one-out."""
    positions = [leaf.position for leaf in leaves]
    n = len(positions)
    sizes = range(1, n) if n <= 4 else (1, n - 1)
    for size in sizes:
        for chosen in combinations(positions, size):
            yield set(chosen)
