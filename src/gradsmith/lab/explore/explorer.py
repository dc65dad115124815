"""Right not only at these inputs: moves away from the example, judged, and shrunk to the one thing that matters.

Moves are tried together (one of each sort in every example) and taken apart where forward does not accept them, so that few
evaluations reach many of them. What is wrong is shrunk towards the user's own example: a move that is not needed is taken
back. Nothing here decides how much a finding weighs: `checking/verdict.py` does, from the kind of the moves that are left.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from gradsmith.lab.explore.budget import within
from gradsmith.lab.explore.defaults import with_defaults
from gradsmith.lab.explore.move import Kind, Move
from gradsmith.lab.explore.moves import indices, options, sizes, structure, values
from gradsmith.lab.explore.sides import kind_of_values
from gradsmith.lab.explore.trial import Trial, examined, worth_exploring
from gradsmith.lab.lab import Lab
from gradsmith.lab.measure.implied import implied
from gradsmith.lab.once import once
from gradsmith.lab.subject.arguments import Arguments

_MOST_FINDINGS = 4


@dataclass(frozen=True)
class Discovery:
    """A confirmed example on which something is bad, with no move left that could be taken back."""

    trial: Trial
    kind: Kind
    assumption: str = ""  # what must hold for the gradient to be right, where that is known


@dataclass
class Exploration:
    """What was tried, and what was found. `left_out` says which moves were not tried, and why."""

    found: list[Discovery] = field(default_factory=list)
    judged: int = 0
    reached: dict[str, set[str]] = field(default_factory=dict)  # kind -> the words of its moves that were judged
    rejected: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    seed: int = 0

    def of(self, *kinds: Kind) -> list[Discovery]:
        """Those of these kinds, the simplest first."""
        return sorted((d for d in self.found if d.kind in kinds), key=lambda d: len(d.trial.moves))


@once
def explored(lab: Lab) -> Exploration:
    """The exploration of a subject whose gradient is right on its example; empty where there is nothing to build on."""
    found = Exploration(seed=lab.settings.seed)
    if not worth_exploring(lab):
        return found

    def explore() -> Exploration:
        _Explorer(lab, found).run()
        return found

    allowance = lab.budget.for_exploring()
    if within(allowance, explore) is None:
        found.left_out.append(f"what comes after {allowance.runs} runs of the subject: {lab.budget.words}")
        lab.left_out.append(f"exploring after {found.judged} example(s)")
    return found


class _Explorer:
    def __init__(self, lab: Lab, found: Exploration) -> None:
        self.lab, self.found = lab, found
        self.base = _with_defaults(lab)
        self.budget = lab.budget.examples
        self.fixed = set(implied(lab.precise[0], lab.precise[1], lab.settings.seed))
        self.culprits: set[tuple[object, ...]] = set()
        self.tries = itertools.count(1)

    def run(self) -> None:
        together, alone = self._planned()
        for example in _covering(together, self.base):
            if self._spent(example):
                return
            self._try(example)
        for move in alone:
            if self._spent([move]):
                return
            self._try([move])

    def _spent(self, example: Sequence[Move]) -> bool:
        if len(self.found.found) >= _MOST_FINDINGS:
            return True
        if self.found.judged < self.budget:
            return False
        self.found.left_out.append(f"the budget of {self.budget} examples was spent before {_names(example)}")
        return True

    def _planned(self) -> tuple[list[list[Move]], list[Move]]:
        """Moves that are tried in company, by sort, and those that are tried alone."""
        lab, base = self.lab, self.base
        sorts: dict[str, list[Move]] = {"values": [], "size": [], "option": [], "ids": []}
        alone: list[Move] = []
        for move in self._allowed(values.moves(lab, base)):
            benign = isinstance(move, values.Redraw) or (isinstance(move, values.Transform) and move.way in _BENIGN)
            (sorts["values"] if benign else alone).append(move)
        for move in self._allowed(indices.moves(lab, base)):
            (alone if move.kind == "structure" else sorts["ids"]).append(move)
        for move in self._allowed(options.moves(lab, base)):
            (sorts["option"] if move.kind == "named option" else alone).append(move)
        sorts["size"] += self._allowed(sizes.moves(lab, base))
        alone += self._allowed(structure.moves(lab, base))
        alone.sort(key=lambda m: _ALONE_ORDER.index(m.kind) if m.kind in _ALONE_ORDER else 0)
        return [found for found in sorts.values() if found], alone

    def _allowed(self, moves: Iterable[Move]) -> list[Move]:
        """Without those that could crash the process, or that change what has to fit the other inputs."""
        kept = []
        for move in moves:
            if move.risky and not self.lab.isolated:
                self.found.left_out.append(f"{move.words()}: it may crash, and is tried in a process of its own only")
            elif self.lab.stochastic and move.kind == "size":
                self.found.left_out.append(
                    f"{move.words()}: forward draws random numbers, and another size is another draw"
                )
            elif getattr(move, "position", None) not in self.fixed:
                kept.append(move)
        return kept

    def _try(self, moves: Sequence[Move]) -> None:
        """Judge these moves together; apart where they are rejected together; what is bad is shrunk and confirmed."""
        moves = [m for m in moves if _key(m) not in self.culprits]
        if not moves or self.found.judged >= self.budget:
            return
        trial = self._examined(moves)
        if trial.status in ("rejected", "unjudged") and len(moves) > 1:
            half = len(moves) // 2
            self._try(moves[:half])
            self._try(moves[half:])
            return
        if trial.status == "rejected":
            self.found.rejected.append(f"{moves[0].words()}: {trial.detail}")
        elif trial.status == "right":
            for move in moves:
                self.found.reached.setdefault(move.kind, set()).add(move.words())
        if not trial.bad:
            return
        least = self._shrunk(trial)
        self.culprits |= {_key(m) for m in least.moves}
        if (confirmed := self._confirmed(least)) is not None:
            self.found.found.append(confirmed)
        rest = [m for m in moves if m not in least.moves]
        if rest and len(self.found.found) < _MOST_FINDINGS:
            self._try(rest)

    def _examined(self, moves: Sequence[Move], again: int = 0) -> Trial:
        self.found.judged += 1
        seed = self.lab.settings.seed * 1009 + 17 + 7919 * again
        return examined(self.lab, self.base, moves, seed)

    def _shrunk(self, trial: Trial) -> Trial:
        """The same failure with as few moves as it takes."""
        if len(trial.moves) > 1:
            for move in sorted(trial.moves, key=_taken_back_first, reverse=True):
                if (alone := self._examined([move])).status == trial.status:
                    return alone
        least = trial
        for move in sorted(trial.moves, key=_taken_back_first) if len(trial.moves) > 2 else ():
            fewer = [m for m in least.moves if m != move]
            if fewer and (shorter := self._examined(fewer)).status == trial.status:
                least = shorter
        return least

    def _confirmed(self, trial: Trial) -> Discovery | None:
        """A wrong number has to be wrong on a second draw, too."""
        again = self._examined(trial.moves, again=1)
        if again.status != trial.status and trial.status in ("wrong", "non-finite", "none"):
            company: list[Move] = [*trial.moves, *_redraws(self.base, trial.moves)]
            if self._examined(company, again=2).status != trial.status:
                return None
        kind, assumption = classified(self.lab, self.base, trial)
        return Discovery(trial, kind, assumption)


_BENIGN = ("large", "negated", "up", "down", "reversed")
_ALONE_ORDER: tuple[Kind, ...] = ("values", "structure", "requires grad", "invented option")


def _covering(sorts: list[list[Move]], base: Arguments) -> list[list[Move]]:
    """Examples in which every move occurs at least once, one of each sort in each; the other inputs are redrawn in half of
    them, so that what hides behind zeros, ones or symmetry shows."""
    if not sorts:
        return []
    count = max(len(sort) for sort in sorts)
    examples = []
    for number in range(count):
        chosen = [sort[number % len(sort)] for sort in sorts if number < len(sort) or len(sort) > 1]
        taken = {getattr(m, "position", None) for m in chosen}
        if number % 2 == 0:
            chosen += [m for m in _redraws(base, chosen) if getattr(m, "position", None) not in taken]
        examples.append(list(dict.fromkeys(chosen)))
    return examples


def _redraws(base: Arguments, beside: Sequence[Move]) -> list[Move]:
    taken = {getattr(m, "position", None) for m in beside}
    leaves = [x for x in base.leaves if values.movable(x) and x.position not in taken]
    return [values.Redraw(x.name, x.position) for x in leaves]


def _taken_back_first(move: Move) -> int:
    """Redraws are the first to go, then other values; what is left should be an option or a size."""
    if isinstance(move, values.Redraw):
        return 0
    return {"values": 1, "ids": 2, "size": 3}.get(move.kind, 4)


def _key(move: Move) -> tuple[object, ...]:
    return (type(move).__name__, move.argument, getattr(move, "way", None), getattr(move, "value", None).__repr__())


def _names(example: Sequence[Move]) -> str:
    return ", ".join(m.words().removeprefix("with ") for m in example)


def _with_defaults(lab: Lab) -> Arguments:
    target, arguments = lab.precise
    return with_defaults(target, arguments)


def classified(lab: Lab, base: Arguments, trial: Trial) -> tuple[Kind, str]:
    """The kind of the moves that are left, the weakest of them; and the assumption that they break.

    Several moves that only matter together, and lead to the other side of a branch, are about the branch.
    """
    kinds = {m.kind for m in trial.moves}
    assumption = "; ".join(m.assumes for m in trial.moves if m.assumes)
    kind = next(k for k in _WEAKEST_FIRST if k in kinds)
    if kinds == {"values"} or (len(trial.moves) > 1 and "values" in kinds and kind in ("size", "ids")):
        reached, bound = kind_of_values(lab, base, trial)
        if kinds == {"values"} or reached != "values":
            return reached, bound
    return kind, assumption


_WEAKEST_FIRST: tuple[Kind, ...] = (
    "state", "gradient control", "invented option", "structure", "requires grad", "ids", "size", "named option", "values",
)  # fmt: skip
