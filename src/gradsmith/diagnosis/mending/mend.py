"""`mended`: the smallest proved change that makes every gradient of a Function right."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import torch
from torch import Tensor

from gradsmith.deriving.deriving import Swept, gradients_of
from gradsmith.deriving.refusal import LoopRefused, Refused
from gradsmith.diagnosis.case import Case, case_of
from gradsmith.diagnosis.mending.own_source import OwnSource, own_source
from gradsmith.diagnosis.mending.proof import Serious, proved
from gradsmith.diagnosis.mending.rewriting import rewrites
from gradsmith.diagnosis.mending.running import running_edits
from gradsmith.diagnosis.mending.slots import slot_edits
from gradsmith.diagnosis.mending.whole import whole
from gradsmith.diagnosis.repair import edit_of, edit_with_ctx
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
    changed: str = ""  # the line in which a small change begins, as it is now


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
    tensors = [leaf.name for leaf in own.arguments.differentiable]
    for edits in chain(
        _small(own, failing, edit_of),
        slot_edits(source, _positions(own, wrong), _positions(own, tensors)),
        _small(own, failing, edit_with_ctx),
        *(running_edits(source, lab) for lab in failing[:1] if _raises(lab)),
    ):
        made = source.changed(edits)
        if made is not None and proved(made, own, [*failing, *others], wrong, serious, small=True):
            line = source.file.text.splitlines()[edits[0].line - 1]
            return Mend(source.file.path, edits, tuple(wrong), edits[0].line, derived=False, changed=line)
    for found in _derivations(source, [*failing, own]):
        for rewrite in rewrites(source, found, wrong):
            made = source.changed(rewrite.edits)
            if made is not None and proved(made, own, [*failing, *others], rewrite.gradients, serious):
                return Mend(source.file.path, rewrite.edits, rewrite.gradients, rewrite.line, derived=True)
    return None


def rederived(own: Lab, serious: Serious) -> Mend:
    """A whole backward derived from forward, in the user's own class, proved at the example and elsewhere; else a Refused."""
    source = own_source(own.target.function) if own.target.function is not None else None
    if source is None:
        raise Refused("its methods do not stand in its own class, or its source is not at hand.")
    args, kwargs = _call(own)
    why = "what was derived could not be proved"
    for trusting in (True, False):
        try:
            found = gradients_of(source.function, args, kwargs, trusting=trusting)
            names = [str(node.name) for node in found.gradients]
            edits, line = whole(source, found, names)
        except Refused as refused:
            why = str(refused)
            continue
        made = source.changed(edits)
        if made is not None and proved(made, own, [], names, serious):
            return Mend(source.file.path, tuple(edits), tuple(names), line, derived=True)
    raise Refused(why)


def _positions(own: Lab, wrong: Sequence[str]) -> list[int]:
    """Which arguments of forward these are."""
    return [i for i, name in enumerate(own.target.names) if name in wrong]


def _raises(lab: Lab) -> bool:
    try:
        return not lab.gradient.pairs
    except Exception:  # of the user's backward
        return True


def _small(own: Lab, failing: Sequence[Lab], edit_of: Callable[[Case], Edit | None]) -> Iterator[tuple[Edit, ...]]:
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
            found = _derived(source, args, kwargs, trusting=trusting)
            if found is not None:
                yield found
                break
    for args in _with_more_dimensions(*_call(labs[-1])):
        found = _derived(source, args, {}, trusting=True)
        if found is not None:
            yield found


def _with_more_dimensions(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[tuple[Any, ...]]:
    """What is written for more dimensions is often right for fewer, too: a flattened batch, where the example has none."""
    floating = [i for i, a in enumerate(args) if isinstance(a, Tensor) and a.is_floating_point() and a.dim()]
    if kwargs:
        return
    for chosen in [[i] for i in floating] + ([floating] if len(floating) > 1 else []):
        larger = list(args)
        for i in chosen:
            a = args[i]
            larger[i] = torch.stack([a.detach(), 1.1 * a.detach()]).requires_grad_(a.requires_grad)
        yield tuple(larger)


def _derived(source: OwnSource, args: tuple[Any, ...], kwargs: dict[str, Any], *, trusting: bool) -> Swept | None:
    """With its loops kept, else turn by turn; None where it is refused."""
    for unrolled in (False, True):
        try:
            return gradients_of(source.function, args, kwargs, trusting=trusting, unrolled=unrolled)
        except LoopRefused:
            continue
        except Refused:
            return None
        except Exception:  # forward is the user's, and the reader stands in for torch
            return None
    return None


def _call(lab: Lab) -> tuple[tuple[Any, ...], dict[str, Any]]:
    arguments = lab.precise[1]
    tensors = {x.position: x.tensor.detach().requires_grad_(x.differentiable) for x in arguments.leaves}
    return arguments.with_tensors(tensors)
