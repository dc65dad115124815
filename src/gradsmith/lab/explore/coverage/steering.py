"""Coverage as a guide: which examples are judged next, and what each of them added."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from gradsmith.lab.explore.coverage.example import coverage_of
from gradsmith.lab.explore.coverage.point import Point, SidesTaken
from gradsmith.lab.explore.coverage.reaching import Search, needed
from gradsmith.lab.explore.coverage.watch import watched_run
from gradsmith.lab.explore.move import Move
from gradsmith.lab.explore.moves.adjust import Adjust
from gradsmith.lab.explore.trial import Trial
from gradsmith.lab.lab import Lab
from gradsmith.lab.subject.arguments import Arguments

_MOST_HOMES = 3


@dataclass
class Home:
    """An example that ran lines which the user's own does not run: sides that stand there are looked for around it."""

    moves: tuple[Move, ...]
    arguments: Arguments
    points: set[Point] = field(default_factory=set)


class Steering:
    """`examples` is how many the explorer may judge: half as many are watched, and half as many runs search for sides."""

    def __init__(self, lab: Lab, base: Arguments, fixed: set[int], examples: int) -> None:
        self.lab = lab
        self.coverage = coverage_of(lab)
        self.watches = examples // 2
        self.most = max(1, examples // 4)  # steps of one search: more would leave nothing for all other kinds
        self.search = Search(lab, base, self.coverage, frozenset(fixed), examples // 2)
        self.beyond = examples // 4  # runs that search around other examples
        self.at_example = _lines(self.coverage.ran)
        self.homes: list[Home] = []

    def steps(self) -> Iterator[list[Move]]:
        """Steps that take a side which no example has taken so far."""
        yield from itertools.islice(self._searched(), self.most)

    def _searched(self) -> Iterator[list[Move]]:
        for step in self.search.steps():
            yield [step]
        yield from self._around()

    def _around(self) -> Iterator[list[Move]]:
        """The same around examples that ran lines which the user's own does not run: a condition inside a branch."""
        for home in self.homes:
            missing = home.points & set(self.coverage.open)
            if not missing or self.beyond <= 0:
                continue
            share = max(1, self.beyond // 2)
            search = Search(self.lab, home.arguments, self.coverage, self.search.fixed, share, frozenset(missing))
            for step in search.steps():
                yield [*home.moves, step]
            self.beyond -= share - search.evaluations

    def _remember(self, trial: Trial, seen: SidesTaken) -> None:
        new = _lines(seen.taken) - self.at_example
        missing = {p for p in self.coverage.open if p.line in new and not any(p in home.points for home in self.homes)}
        if missing and trial.arguments is not None and len(self.homes) < _MOST_HOMES:
            self.homes.append(Home(trial.moves, trial.arguments, missing))

    def ordered(self, examples: list[list[Move]], left: int) -> list[list[Move]]:
        """Where no more than `left` can be judged, those first that change what decides a side which is still open."""
        if len(examples) <= left:
            return examples
        deciding = {p for point in self.coverage.open for p in self.coverage.possible[point]}
        return sorted(examples, key=lambda moves: not any(getattr(m, "position", None) in deciding for m in moves))

    def may_end_with(self, moves: Sequence[Move]) -> bool:
        """Whether a search could have found all of these."""
        return all(isinstance(m, Adjust) and m.position in self.search.positions for m in moves)

    def note(self, trial: Trial) -> None:
        """What an example ran, while something is left to be seen, and runs are left to see it."""
        judged = trial.status == "right" or trial.bad
        if trial.arguments is None or trial.status == "rejected" or self.watches <= 0:
            return
        seen_before = self.coverage.judged if judged else self.coverage.ran
        missing = [p for p in self.coverage.possible if p not in seen_before]
        if not missing:
            return
        self.watches -= 1
        wanted = needed(missing)
        seen = watched_run(self.lab, trial.arguments, **wanted)
        self.coverage.add(seen, judged=judged)
        if not wanted["operations"] and any(p.sort == "line" and p in seen.taken for p in missing):
            # A line that runs for the first time may hold operations that choose; watching them costs many times the run.
            self.coverage.add(watched_run(self.lab, trial.arguments, lines=False), judged=judged)
        if trial.status == "right":
            self._remember(trial, seen)


def _lines(points: Iterable[Point]) -> set[int]:
    return {point.line for point in points if point.sort == "line"}
