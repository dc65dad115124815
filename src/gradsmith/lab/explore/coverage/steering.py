"""Coverage as a guide: which examples are judged next, and what each of them added."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gradsmith.lab.explore.coverage.example import coverage_of
from gradsmith.lab.explore.coverage.reaching import Search, needed
from gradsmith.lab.explore.coverage.watch import watched_run
from gradsmith.lab.explore.move import Move
from gradsmith.lab.explore.moves.adjust import Adjust
from gradsmith.lab.explore.trial import Trial
from gradsmith.lab.lab import Lab
from gradsmith.lab.subject.arguments import Arguments


class Steering:
    """`examples` is how many the explorer may judge: half as many are watched, and half as many runs search for sides."""

    def __init__(self, lab: Lab, base: Arguments, fixed: set[int], examples: int) -> None:
        self.lab = lab
        self.coverage = coverage_of(lab)
        self.watches = examples // 2
        self.most = max(1, examples // 4)  # steps of one search: more would leave nothing for all other kinds
        self.search = Search(lab, base, self.coverage, frozenset(fixed), examples // 2)

    def steps(self) -> Iterator[Adjust]:
        """Steps that take a side which no example has taken so far."""
        for number, step in enumerate(self.search.steps(), 1):
            yield step
            if number >= self.most:
                return

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
        if any(p.sort == "line" for p in missing):  # one that has not run may hold operations that choose
            wanted["operations"] = True
        self.coverage.add(watched_run(self.lab, trial.arguments, **wanted), judged=judged)
