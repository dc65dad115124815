"""The other side of a condition: looked for along scaling and shifting of the inputs that the condition derives from.

One evaluation is one watched run, and says for every open side at once whether it was taken. Where one is, the step is
bisected back towards the example, so that what is judged, and told, is no further away than it has to be.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import TypedDict

from gradsmith.lab.explore.coverage.point import Coverage, Point
from gradsmith.lab.explore.coverage.watch import watched_run
from gradsmith.lab.explore.moves.adjust import Adjust
from gradsmith.lab.explore.moves.values import movable
from gradsmith.lab.lab import Lab
from gradsmith.lab.subject.arguments import Arguments, Leaf

_HALVINGS = 3
_BEYOND = 1.5  # so far past the place where the side begins: at the place itself forward has a corner


class Watching(TypedDict):
    """What of a run is watched: the options of `watched_run`."""

    lines: bool
    operations: bool
    only: Collection[int]


@dataclass(frozen=True)
class SearchDirection:
    """One direction away from the example: steps of growing size, the least first."""

    rungs: tuple[float, ...]
    step: Callable[[Leaf, float], tuple[float, float]]  # factor and shift


def _size(leaf: Leaf) -> float:
    return max(1.0, float(leaf.tensor.detach().abs().double().square().mean().sqrt()))


_WAYS = (
    SearchDirection((1.0, 10.0, 100.0), lambda leaf, much: (-much, 0.0)),
    SearchDirection((3.0, 30.0, 300.0), lambda leaf, much: (much, 0.0)),
    SearchDirection((1.0, 4.0, 16.0), lambda leaf, much: (1.0, _rounded(much * _size(leaf)))),
    SearchDirection((1.0, 4.0, 16.0), lambda leaf, much: (1.0, -_rounded(much * _size(leaf)))),
    SearchDirection((10.0, 1000.0), lambda leaf, much: (_rounded(1 / much), 0.0)),
)


@dataclass
class Search:
    """A search around one example, with so many watched runs."""

    lab: Lab
    base: Arguments
    coverage: Coverage
    fixed: frozenset[int]  # inputs that have to fit the others
    evaluations: int
    only: frozenset[Point] | None = None  # the sides that are looked for; None for all

    def steps(self) -> Iterator[Adjust]:
        """Steps that take sides which were never taken, each found by a run. The caller judges them before the next one."""
        for leaf in self._leaves():
            for way in _WAYS:
                if (step := self._along(leaf, way)) is not None:
                    yield step

    @property
    def positions(self) -> set[int]:
        """Of the inputs that are scaled and shifted."""
        return {leaf.position for leaf in self._leaves()}

    def _leaves(self) -> list[Leaf]:
        """Those first that decide the most open sides; those that are known to decide none last.

        A tensor of one element beside larger ones keeps its sign and magnitude: a temperature, a step size. Where every
        input has one element, the example is small, and says nothing of signs.
        """
        decided = [position for point in self.coverage.open for position in self.coverage.possible[point]]
        least = min(2, max((x.tensor.numel() for x in self.base.leaves), default=0))
        leaves = [
            x for x in self.base.leaves if movable(x) and x.tensor.numel() >= least and x.position not in self.fixed
        ]
        return sorted((x for x in leaves if not x.tensor.is_complex()), key=lambda x: -decided.count(x.position))

    def _along(self, leaf: Leaf, way: SearchDirection) -> Adjust | None:
        wanted = self._wanted(leaf)
        below = 0.0
        for much in way.rungs if wanted else ():
            new = self._new(self._step(leaf, way, much), wanted)
            if new is None:
                return None
            if new:
                return self._least(leaf, way, (below, much), new)
            below = much
        return None

    def _wanted(self, leaf: Leaf) -> set[Point]:
        """Open sides that this input may decide: those of which it is known, and those of which nothing is."""
        possible = self.coverage.possible
        open_now = self.coverage.open if self.only is None else [p for p in self.coverage.open if p in self.only]
        return {p for p in open_now if leaf.position in possible[p] or not possible[p]}

    def _least(self, leaf: Leaf, way: SearchDirection, between: tuple[float, float], new: set[Point]) -> Adjust:
        low, high = between
        for _ in range(_HALVINGS):
            middle = _rounded((low + high) / 2)
            if not low < middle < high:
                break
            if self._new(self._step(leaf, way, middle), new) == new:
                high = middle
            else:
                low = middle
        further = _rounded(_BEYOND * high)
        if between[0] and further < between[1] and self._new(self._step(leaf, way, further), new) == new:
            high = further
        return self._step(leaf, way, high)

    def _step(self, leaf: Leaf, way: SearchDirection, much: float) -> Adjust:
        return Adjust(leaf.name, leaf.position, *way.step(leaf, much))

    def _new(self, step: Adjust, wanted: set[Point]) -> set[Point] | None:
        """Which of these sides it takes; None where it cannot be told any more."""
        if self.evaluations <= 0:
            return None
        arguments = step.applied(self.base, 0)
        if arguments is None:
            return set()
        self.evaluations -= 1
        seen = watched_run(self.lab, arguments, **needed(wanted))
        return wanted & seen.taken


def needed(points: Collection[Point]) -> Watching:
    """What has to be watched to see these."""
    python = {p.line for p in points if p.sort != "operation"}
    return {"lines": bool(python), "operations": any(p.sort == "operation" for p in points), "only": python}


def _rounded(number: float) -> float:
    return float(f"{number:.2g}")
