"""`mended`: the smallest proved change that makes every gradient of a Function right."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from gradsmith.deriving.deriving import Swept, gradients_of
from gradsmith.deriving.refusal import Refused
from gradsmith.diagnosis.case import case_of
from gradsmith.diagnosis.mending.own_source import OwnSource, own_source
from gradsmith.diagnosis.mending.proof import Serious, proved
from gradsmith.diagnosis.mending.rewriting import rewrites
from gradsmith.diagnosis.mending.slots import slot_edits
from gradsmith.diagnosis.repair import edit_of
from gradsmith.findings import Edit
from gradsmith.lab.lab import Lab


@dataclass(frozen=True)
class Mend:
    """Edits of the user's file, proved; `gradients` are the inputs whose gradient they change."""

    path: str
    edits: tuple[Edit, ...]
    gradients: tuple[str, ...]
    line: int
    derived: bool  # lines that were derived from forward, not a small change


def mended(
    own: Lab, failing: Sequence[Lab], wrong: Sequence[str], serious: Serious, others: Sequence[Lab] = ()
) -> Mend | None:
    """The first change that is proved: a small one of the source, then derived lines for `wrong`, then a derived backward.

    `failing` are the examples that refuted it; `own` is the user's, at which it may be right, and
    `others` are further ones that the user gave.
    """
    cls = own.target.function
    source = own_source(cls) if cls is not None and not own.surrogate and not own.approximate else None
    if source is None:
        return None
    for edits in (*_small(own, failing), *slot_edits(source, _positions(own, wrong))):
        made = source.changed(edits)
        if made is not None and proved(made, own, [*failing, *others], wrong, serious):
            return Mend(source.file.path, edits, tuple(wrong), edits[0].line, derived=False)
    for found in _derivations(source, [*failing, own]):
        for rewrite in rewrites(source, found, wrong):
            made = source.changed(rewrite.edits)
            if made is not None and proved(made, own, [*failing, *others], rewrite.gradients, serious):
                return Mend(source.file.path, rewrite.edits, rewrite.gradients, rewrite.line, derived=True)
    return None


def _positions(own: Lab, wrong: Sequence[str]) -> list[int]:
    """Which arguments of forward these are."""
    return [i for i, name in enumerate(own.target.names) if name in wrong]


def _small(own: Lab, failing: Sequence[Lab]) -> Iterator[tuple[Edit, ...]]:
    """The changes that mend one gradient each: alone, then all of them together."""
    found: list[Edit] = []
    for lab in failing:
        try:
            wrong = lab.gradient.wrong
        except Exception:  # backward raises: nothing to change a little
            continue
        for pair in wrong:
            case = case_of(lab, pair, own=own if lab is not own else None) if not pair.missing else None
            edit = edit_of(case) if case is not None else None
            if edit is not None and edit not in found:
                found.append(edit)
    yield from ((edit,) for edit in found)
    if len(found) > 1:
        yield tuple(found)


def _derivations(source: OwnSource, labs: Sequence[Lab]) -> Iterator[Swept]:
    """The derivative of forward, plain where equal sizes are taken to be equal, then exact for every broadcast."""
    for trusting in (True, False):
        for lab in labs[:2]:
            args, kwargs = _call(lab)
            try:
                yield gradients_of(source.function, args, kwargs, trusting=trusting)
            except Refused:
                continue
            except Exception:  # forward is the user's, and the reader stands in for torch
                continue
            break


def _call(lab: Lab) -> tuple[tuple[Any, ...], dict[str, Any]]:
    arguments = lab.precise[1]
    tensors = {x.position: x.tensor.detach().requires_grad_(x.differentiable) for x in arguments.leaves}
    return arguments.with_tensors(tensors)
