"""Right not only at these inputs: moves away from the example, judged, and shrunk to the one thing that matters.

Moves are tried together (one of each sort in every example) and taken apart where forward does not accept them, so that few
evaluations reach many of them. What is wrong is shrunk towards the user's own example: a move that is not needed is taken
back. Nothing here decides how much a finding weighs: `checking/verdict.py` does, from the kind of the moves that are left.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from gradsmith.lab.explore import database
from gradsmith.lab.explore.budget import within
from gradsmith.lab.explore.coverage.steering import Steering
from gradsmith.lab.explore.defaults import with_defaults
from gradsmith.lab.explore.domains import Domain
from gradsmith.lab.explore.drawing import domains_of
from gradsmith.lab.explore.move import Kind, Move
from gradsmith.lab.explore.moves import dtypes, indices, optional, options, ranks, sizes, structure, values
from gradsmith.lab.explore.questions import cuts, overwritten_by, uneven
from gradsmith.lab.explore.sides import kind_of_values
from gradsmith.lab.explore.trial import Trial, examined, is_autograds, worth_exploring
from gradsmith.lab.lab import Lab
from gradsmith.lab.measure.implied import implied
from gradsmith.lab.measure.values import finite
from gradsmith.lab.once import once
from gradsmith.lab.process.state import sparse_checked
from gradsmith.lab.run import recorded
from gradsmith.lab.subject.arguments import Arguments
from gradsmith.lab.subject.foreign import foreign

_MOST_FINDINGS = 4
_MOST_PAIRS = 12  # of options


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
    judged: int = 0  # examples that were run, those of shrinking and those that forward rejected among them
    right: set[tuple[frozenset[Move], int]] = field(default_factory=set)  # those whose gradient was right
    reached: dict[str, set[str]] = field(default_factory=dict)  # kind -> the words of its moves that were judged
    rejected: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)  # "step: reason"
    spent: bool = False  # the budget ended it
    replayed: list[Trial] = field(default_factory=list)  # failing examples of earlier runs, as they are now
    seed: int = 0

    def of(self, *kinds: Kind) -> list[Discovery]:
        """Those of these kinds, the simplest first."""
        return sorted((d for d in self.found if d.kind in kinds), key=lambda d: len(d.trial.moves))


@once
def explored(lab: Lab) -> Exploration:
    """The exploration of a subject whose gradient is right on its example; empty where there is nothing to build on."""
    found = Exploration(seed=lab.settings.seed)
    if not worth_exploring(lab) or not _finite_at_the_example(lab):
        return found

    def explore() -> Exploration:
        with sparse_checked():
            _Explorer(lab, found).run()
        return found

    allowance = lab.budget.for_exploring()
    if within(allowance, explore) is None:
        found.left_out.append(f"what comes after {allowance.runs} runs of the subject: {lab.budget.words}")
        lab.left_out.append(f"exploring after {found.judged} example(s)")
    return found


def _finite_at_the_example(lab: Lab) -> bool:
    """A gradient that is infinite or NaN at the example is named there, and would be at every step again."""
    declared = lab.surrogate or lab.approximate
    return bool(declared) or all(p.missing or finite(p.claimed) for p in lab.gradient.pairs)


class _Explorer:
    def __init__(self, lab: Lab, found: Exploration) -> None:
        self.lab, self.found = lab, found
        self.base = _with_defaults(lab)
        self.budget = lab.budget.examples
        self.foreign = foreign(lab)
        self.scattered = overwritten_by(lab.tape, self.base.leaves)
        self.fixed = set(implied(lab.precise[0], lab.precise[1], lab.settings.seed))
        self.culprits: set[tuple[object, ...]] = set()
        self.steering = Steering(lab, self.base, self.fixed, self.budget)

    def run(self) -> None:
        together, alone = self._planned()
        known = self._replayed(set(_and_nearer([*itertools.chain(*together, alone), *self._redraws(())])))
        try:
            self._search(
                [*self._covering(together), *([move] for move in alone), *_pairs_of_options([*together, alone])]
            )
        finally:  # also where no run is left
            database.keep(self.lab, [(d.trial, self._seed()) for d in self.found.found])
            fresh = [set(d.trial.moves) for d in self.found.found]
            self.found.found += [d for d in known if set(d.trial.moves) not in fresh]

    def _search(self, planned: list[list[Move]]) -> None:
        for example in planned[:1]:
            self._try(example)
        self._reach()
        for example in self.steering.ordered(planned[1:], self.budget - self.found.judged):
            self._try(example)
        self._reach()

    def _reach(self) -> None:
        """Judge steps to sides of conditions that no example has taken so far."""
        if self._enough() or self.found.judged >= self.budget:
            return
        for step in self.steering.steps():
            self._try(step)

    def _replayed(self, planned: set[Move]) -> list[Discovery]:
        """What failed in earlier runs and still does. It costs nothing of the budget: it adds examples and takes none."""
        found: list[Discovery] = []

        def replay() -> None:
            for failure in database.failures(self.lab, planned, self.steering.may_end_with)[: self.budget // 4]:
                trial = examined(self.lab, self.base, failure.moves, failure.seed)
                database.judged(failure, trial)
                self.found.replayed.append(trial)
                found.extend(d for d in [self._confirmed(trial) if trial.bad else None] if d is not None)

        within(self.lab.budget.for_replaying(), replay)
        self.found.judged = 0
        self.found.right.clear()
        return found

    def _ended(self) -> str:
        """Why no further example is tried; empty where there is no reason."""
        if self._enough():
            return f"{_MOST_FINDINGS} failing examples were found before"
        self.found.spent = self.found.judged >= self.budget
        return f"the budget of {self.budget} examples was spent" if self.found.spent else ""

    def _leave_out(self, moves: Sequence[Move], why: str) -> None:
        untried = [m for m in moves if m.words() not in self.found.reached.get(m.kind, ())]
        self.found.left_out += [told for m in untried if (told := f"{m.words()}: {why}") not in self.found.left_out]

    def _enough(self) -> bool:
        """Whether so many different things were found that more would not help."""
        return len({(d.kind, d.assumption, _of(d.trial)) for d in self.found.found}) >= _MOST_FINDINGS

    def _planned(self) -> tuple[list[list[Move]], list[Move]]:
        """Moves that are tried in company, by sort, and those that are tried alone."""
        lab, base = self.lab, self.base
        sorts: dict[str, list[Move]] = {"values": [], "size": [], "option": [], "ids": []}
        alone: list[Move] = []
        for move in self._allowed(values.moves(lab, base)):
            if isinstance(move, values.Magnify) and move.way == "huge" and not is_autograds(lab):
                continue  # differences have no digits left there
            benign = isinstance(move, values.Redraw) or (isinstance(move, values.Transform) and move.way in _BENIGN)
            (sorts["values"] if benign else alone).append(move)
        for move in self._allowed(indices.moves(lab, base)):
            (alone if move.kind == "structure" else sorts["ids"]).append(move)
        for move in self._allowed(options.moves(lab, base)):
            (sorts["option"] if move.kind == "named option" else alone).append(move)
        sorts["option"] += self._allowed(optional.moves(lab, base))
        for move in self._allowed([*sizes.moves(lab, base), *ranks.moves(lab, base), *dtypes.moves(lab, base)]):
            (sorts["size"] if move.kind == "size" else alone).append(move)
        alone += self._allowed(structure.moves(lab, base))
        alone.sort(key=lambda m: _ALONE_ORDER.index(m.kind) if m.kind in _ALONE_ORDER else 0)
        return [found for found in sorts.values() if found], alone

    def _allowed(self, moves: Iterable[Move]) -> list[Move]:
        """Without those that could crash the process, or that change what has to fit the other inputs."""
        kept = []
        for move in moves:
            if move.risky and not self.lab.isolated:
                self.found.left_out.append(f"{move.words()}: it may crash, and is tried in a process of its own only")
            elif move.addresses and self.foreign and not self.lab.isolated:
                self.found.left_out.append(f"{move.words()}: forward passes raw pointers, and may read elsewhere")
            elif self.lab.stochastic and isinstance(move, sizes.Resize):
                self.found.left_out.append(
                    f"{move.words()}: forward draws random numbers, and another size is another draw"
                )
            elif self.scattered and isinstance(move, sizes.Resize):
                self.found.left_out.append(f"{move.words()}: forward writes at ids, some of which might come twice")
            elif self.fixed and not (move.kind in ("values", "structure") and isinstance(move, _OF_ONE_INPUT)):
                self.found.left_out.append(f"{move.words()}: an input that only backward reads has to fit the others")
            elif getattr(move, "position", None) not in self.fixed:
                kept.append(move)
        return kept

    def _try(self, moves: Sequence[Move]) -> None:
        """Judge these moves together; apart where they are rejected together; what is bad is shrunk and confirmed."""
        moves = [m for m in moves if _key(m) not in self.culprits]
        if not moves:
            return
        if why := self._ended():
            self._leave_out(moves, why)
            return
        trial = self._examined(moves)
        self.steering.note(trial)
        if trial.status in ("rejected", "unjudged") and len(moves) > 1:
            half = len(moves) // 2
            self._try(moves[:half])
            self._try(moves[half:])
            return
        no_answer = trial.status in ("rejected", "unjudged") and trial.arguments is not None
        if no_answer and (nearer := moves[0].nearer()) is not None:
            self._try([nearer])
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
        if rest and not self._enough():
            self._try(rest)

    def _examined(self, moves: Sequence[Move], again: int = 0) -> Trial:
        self.found.judged += 1
        trial = examined(self.lab, self.base, moves, self._seed(again))
        if trial.status == "right":
            self.found.right.add((frozenset(moves), again))
        return trial

    def _seed(self, again: int = 0) -> int:
        return self.lab.settings.seed * 1009 + 17 + 7919 * again

    def _shrunk(self, trial: Trial) -> Trial:
        """A failure with as few moves as it takes: what raises in company may be a wrong number alone, which is worse."""
        if len(trial.moves) > 1:
            for move in sorted(trial.moves, key=_taken_back_first, reverse=True):
                if (alone := self._examined([move])).bad:
                    return alone
        least = trial
        for move in sorted(trial.moves, key=_taken_back_first) if len(trial.moves) > 2 else ():
            fewer = [m for m in least.moves if m != move]
            if fewer and (shorter := self._examined(fewer)).bad:
                least = shorter
        return least

    def _confirmed(self, trial: Trial) -> Discovery | None:
        """A wrong number has to be wrong on a second draw, too."""
        again = self._second_draw(trial.moves)
        if again.status != trial.status and trial.status in ("wrong", "non-finite", "none"):
            company: list[Move] = [*trial.moves, *self._redraws(trial.moves)]
            if self._examined(company, again=2).status != trial.status:
                return None
        trial = self._crossed(trial)
        kind, assumption = classified(self.lab, self.base, trial)
        return Discovery(trial, kind, assumption)

    def _second_draw(self, moves: Sequence[Move]) -> Trial:
        """The same moves, drawn anew; another time where nothing can be said of that draw."""
        for again in (1, 5, 6):
            trial = self._examined(moves, again=again)
            if trial.status not in ("rejected", "unjudged"):
                break
        return trial

    def _crossed(self, trial: Trial) -> Trial:
        """Another size is other values, too: where these alone do it, at the example's own size, the size is innocent."""
        if not {"size"} <= {m.kind for m in trial.moves} <= {"size", "values"}:
            return trial
        others = [m for m in trial.moves if m.kind != "size"]
        for again in (3, 4):
            redrawn = self._examined([*others, *self._redraws(others)], again=again)
            if redrawn.status == trial.status:
                return self._shrunk(redrawn)
        return trial

    def _covering(self, sorts: list[list[Move]]) -> list[list[Move]]:
        """Examples in which every move occurs at least once, one of each sort in each; the other inputs are redrawn in half
        of them, so that what hides behind zeros, ones or symmetry shows."""
        examples = []
        for number in range(max((len(sort) for sort in sorts), default=0)):
            chosen = [sort[number % len(sort)] for sort in sorts if number < len(sort) or len(sort) > 1]
            chosen += self._redraws(chosen) if number % 2 == 0 else []
            examples.append(list(dict.fromkeys(chosen)))
        return examples

    def _redraws(self, beside: Sequence[Move]) -> list[Move]:
        """Other values for every input that these moves leave alone."""
        taken = {getattr(m, "position", None) for m in beside} | self.fixed
        leaves = [x for x in self.base.leaves if values.movable(x) and x.position not in taken]
        return [values.Redraw(x.name, x.position) for x in leaves]


_OF_ONE_INPUT = (values.Redraw, values.Transform, structure.Break)
_BENIGN = ("large", "negated", "up", "down", "reversed")
_ALONE_ORDER: tuple[Kind, ...] = ("values", "structure", "requires grad", "invented option")


def _pairs_of_options(planned: Iterable[Iterable[Move]]) -> list[list[Move]]:
    """Two options at once, of which at least one is named: what one value of an option hides, another may show."""
    found = [m for sort in planned for m in sort if isinstance(m, options.SetOption)]
    named = [m for m in found if m.kind == "named option"]
    pairs = itertools.chain(
        itertools.combinations(named, 2), itertools.product(named, [m for m in found if m.kind == "invented option"])
    )
    by_options: dict[frozenset[int], list[list[Move]]] = {}
    for a, b in pairs:
        if a.position != b.position:
            by_options.setdefault(frozenset((a.position, b.position)), []).append([a, b])
    turns = itertools.zip_longest(*by_options.values())
    return [pair for turn in turns for pair in turn if pair is not None][:_MOST_PAIRS]


def _and_nearer(moves: Iterable[Move]) -> Iterator[Move]:
    """These, and what is tried where forward cannot follow them."""
    for move in moves:
        step: Move | None = move
        while step is not None:
            yield step
            step = step.nearer()


def _of(trial: Trial) -> str:
    return trial.mismatch.argument if trial.mismatch is not None else trial.moves[0].argument


def _taken_back_first(move: Move) -> int:
    """Redraws are the first to go, then other values; what is left should be an option or a size."""
    if isinstance(move, values.Redraw):
        return 0
    return {"values": 1, "ids": 2, "size": 3}.get(move.kind, 4)


def _key(move: Move) -> tuple[object, ...]:
    told = [getattr(move, name, None).__repr__() for name in ("way", "value", "factor", "shift")]
    return (type(move).__name__, move.argument, *told)


def _with_defaults(lab: Lab) -> Arguments:
    """The example with the defaults that were left out of the call, and what holds of each tensor and is not an accident."""
    target, arguments = lab.precise
    whole = with_defaults(target, arguments)
    leaves = [replace(x, domains=_names(domains_of(x.tensor, differentiable=x.differentiable))) for x in whole.leaves]
    return replace(whole, leaves=leaves)


def _names(domains: Iterable[Domain]) -> tuple[str, ...]:
    return tuple(domain.name for domain in domains)


def classified(lab: Lab, base: Arguments, trial: Trial) -> tuple[Kind, str]:
    """The kind of the moves that are left, the weakest of them; and the assumption that they break.

    Several moves that only matter together, and lead to the other side of a branch, are about the branch.
    """
    kinds = {m.kind for m in trial.moves}
    assumption = "; ".join(m.assumes for m in trial.moves if m.assumes)
    kind = next(k for k in _WEAKEST_FIRST if k in kinds)
    if "size" in kinds and _cut_unevenly(lab, trial):
        return "structure", f"'{trial.moves[0].argument}' can be cut into equal parts, as forward does"
    chosen = trial.arguments if kinds <= {"named option", "invented option"} else None
    if chosen is not None and options.changes_only_gradients(lab, base, chosen):
        return "gradient control", ""
    if kinds <= {"values", "size", "ids"} and ("values" in kinds or "size" in kinds):
        reached, bound = kind_of_values(lab, base, trial)
        if kinds == {"values"} or reached == "clamp" or (reached == "branch" and len(trial.moves) > 1):
            return reached, bound
    return kind, assumption


def _cut_unevenly(lab: Lab, trial: Trial) -> bool:
    """Whether forward cuts into parts of one size at the example, and of different sizes here."""
    if trial.arguments is None or not cuts(lab.tape) or uneven(lab.tape):
        return False
    return uneven(recorded(lab.precise[0], trial.arguments, lab.settings.seed))


_WEAKEST_FIRST: tuple[Kind, ...] = (
    "state", "gradient control", "invented option", "structure", "requires grad", "ids", "size", "named option", "values",
)  # fmt: skip
