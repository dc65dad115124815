"""Shapes that forward asks for itself: each error says which sizes do not fit, and the next attempt has others.

The forms of proposals.py are those that inputs usually have to one another. Where none of them fits (a weight of a fourth of
the width, tables of their own), the attempt that came farthest is taken, and its shapes are changed as its error says: a
size that the message names becomes the other size that it names, an input with too few dimensions gets one more, and what
a failed assertion compares is made equal. A change is kept if forward then comes at least as far.
"""

from __future__ import annotations

import heapq
import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import torch

from gradsmith.inputs.guess.asked import Asked
from gradsmith.inputs.guess.proposals import Frame, OnDiagonals, Proposal, Recipe
from gradsmith.lab.process import torch_says

_LARGEST = 64
_CHANGES = 10  # of one attempt
_ROOM = 5  # dimensions
_PRICE = 0.1  # of an idea that was tried, in operations that forward came through
_SIDEWAYS = 2.0
_SIZES = re.compile(r"(?<![A-Za-z_])\d+(?:x\d+)*")  # 4, 6x4, and not the 1 of mat1
_DRAWN = ("floating", "integer", "bool", "complex")


@dataclass(frozen=True)
class Failed:
    """An attempt that forward rejected: how far it came (in operations), what it said, which inputs took part."""

    reached: float
    chosen: tuple[Proposal, ...]
    frame: Frame
    text: str
    blamed: frozenset[int]
    asked: tuple[Asked, ...] = ()


def mended(start: Sequence[Failed], attempt: Callable[[list[Proposal], Frame], Failed | None]) -> None:
    """Try other shapes, the most promising first, until `attempt` returns None: it is satisfied, or out of time."""
    order = itertools.count()
    waiting = [(-float(failed.reached), next(order), 0, failed, _changed(failed)) for failed in start]
    heapq.heapify(waiting)
    seen = {_key(_literal(failed)) for failed in start}
    heard = {_complaint(failed) for failed in start}
    while waiting:
        rank, number, changes, failed, ideas = heapq.heappop(waiting)
        chosen = next(ideas, None)
        if chosen is None:
            continue
        # Whoever came one operation farther is asked ten times as long.
        heapq.heappush(waiting, (rank + _PRICE, number, changes, failed, ideas))
        if (known := _key(chosen)) in seen:
            continue
        seen.add(known)
        answer = attempt(chosen, failed.frame)
        if answer is None:
            return
        if answer.reached >= failed.reached and changes < _CHANGES:
            # A complaint nobody has heard yet is a step ahead; what came no farther waits behind the other ideas.
            new = (complaint := _complaint(answer)) not in heard
            heard.add(complaint)
            ahead = answer.reached > failed.reached or new
            place = -answer.reached - 0.5 * new if ahead else rank + _SIDEWAYS
            heapq.heappush(waiting, (place, next(order), changes + 1, answer, _changed(answer)))


def _complaint(failed: Failed) -> tuple[float, str]:
    """What an error says, whatever the sizes."""
    return failed.reached, without_sizes(failed.text)


def without_sizes(text: str) -> str:
    return _SIZES.sub("", text)


def _key(chosen: Sequence[Proposal]) -> tuple[str, ...]:
    return tuple(f"{p.kind} {p.form} {p.domain} {p.dtype}" if p.kind in _DRAWN else repr(p.value) for p in chosen)


def _literal(failed: Failed) -> list[Proposal]:
    """The same proposals with their sizes written out."""
    return [_sized(p, shape) if (shape := _shape(p, failed.frame)) is not None else p for p in failed.chosen]


def _sized(proposal: Proposal, shape: tuple[int, ...]) -> Proposal:
    return replace(proposal, form="x".join(map(str, shape)) or "scalar")


def _shape(proposal: Proposal, frame: Frame) -> tuple[int, ...] | None:
    return frame.shape(proposal.form) if proposal.kind in _DRAWN else None


def _changed(failed: Failed) -> Iterator[list[Proposal]]:
    """The shapes that the error suggests, each a change of one input; then other values, then a change of all alike."""
    chosen = _literal(failed)
    named = [int(n) for sizes in _SIZES.findall(failed.text) for n in sizes.split("x")]
    sizes = [n for n in dict.fromkeys(named) if 0 < n <= _LARGEST]
    places = sorted(failed.blamed) or range(len(chosen))
    drawn = [i for i in places if i < len(chosen) and _shape(chosen[i], failed.frame) is not None]
    for wish in failed.asked:
        if (granted := _granted(chosen[wish.position], wish, failed.frame)) is not None:
            yield [granted if k == wish.position else p for k, p in enumerate(chosen)]
            if wish.what == "size":
                yield from _all_alike(chosen, wish, failed.frame)
    if (layout := torch_says.sparse_layout_wanted(failed.text)) is not None:
        for i in (i for i, p in enumerate(chosen) if p.kind == "floating"):
            yield [_sparse(p, layout, failed.frame) if k == i else p for k, p in enumerate(chosen)]
    if (kind := torch_says.wanted_instead(failed.text)) in _DRAWN:
        for i in drawn:
            yield [_of_kind(p, str(kind)) if k == i else p for k, p in enumerate(chosen)]
    for i in drawn:
        shape = _shape(chosen[i], failed.frame) or ()
        for other in _other_sizes(shape, sizes):
            yield [_sized(p, other) if k == i else p for k, p in enumerate(chosen)]
    for i in drawn:
        shape = _shape(chosen[i], failed.frame) or ()
        for other in _other_ranks(shape, chosen[i].ndim):
            yield [_sized(p, other) if k == i else p for k, p in enumerate(chosen)]
    for i, proposal in enumerate(chosen):
        for value in _other_numbers(proposal.value, sizes) if proposal.kind == "value" else ():
            yield [replace(p, value=value) if k == i else p for k, p in enumerate(chosen)]
    for i in drawn:
        shape = _shape(chosen[i], failed.frame) or ()
        for domain in ("definite",) if len(shape) > 1 and shape[-1] == shape[-2] else ("positive", "unit", "negative"):
            if chosen[i].kind == "floating" and chosen[i].domain != domain:
                yield [p.drawn_from(domain) if k == i else p for k, p in enumerate(chosen)]
    if len(drawn) > 1:
        for more in (True, False):
            ranks = {i: _one_rank(_shape(chosen[i], failed.frame) or (), more) for i in drawn}
            yield [_sized(p, ranks[i]) if i in ranks else p for i, p in enumerate(chosen)]


def _sparse(proposal: Proposal, layout: torch.layout, frame: Frame) -> Proposal:
    """A sparse matrix in its place: square, for whoever solves with it, and definite, so that its diagonals are, too."""
    sizes = [n for n in _shape(proposal, frame) or () if n > 1] or [frame.d]
    dense = replace(proposal, form=f"{sizes[-1]}x{sizes[-1]}", domain="definite", ndim=None, least=0)
    return replace(proposal, kind="wrapped", value=Recipe(OnDiagonals(layout), (dense,)))


def _all_alike(chosen: list[Proposal], wish: Asked, frame: Frame) -> Iterator[list[Proposal]]:
    """With the new size wherever the old one is: sizes that have to be equal can only change together."""
    place, size = wish.value
    shape = _shape(chosen[wish.position], frame) or ()
    if place >= len(shape) or size == shape[place]:
        return
    shapes = [_shape(p, frame) for p in chosen]
    swapped = [s and tuple(size if n == shape[place] else n for n in s) for s in shapes]
    yield [_sized(p, new) if new and new != old else p for p, old, new in zip(chosen, shapes, swapped)]


def _other_sizes(shape: tuple[int, ...], sizes: list[int]) -> Iterator[tuple[int, ...]]:
    """With one size that the message names replaced by another one of the message."""
    for place, size in enumerate(shape):
        if size in sizes:
            yield from ((*shape[:place], other, *shape[place + 1 :]) for other in sizes if other != size)


def _other_ranks(shape: tuple[int, ...], wanted: int | None) -> Iterator[tuple[int, ...]]:
    for more in (True, False):
        other = _one_rank(shape, more)
        if other != shape and wanted in (None, len(other)):
            yield other


def _one_rank(shape: tuple[int, ...], more: bool) -> tuple[int, ...]:
    """One dimension more in front, or one fewer."""
    if more:
        return (2, *shape) if len(shape) < _ROOM else shape
    return shape[1:]


def _granted(proposal: Proposal, wish: Asked, frame: Frame) -> Proposal | None:
    """The proposal as it is asked for; None where it cannot be."""
    shape = _shape(proposal, frame)
    if wish.what == "value":
        free = proposal.kind == "value" or not proposal.gradient
        return replace(proposal, kind="value", value=wish.value) if free else None
    if shape is None:
        if wish.what == "rank" and isinstance(proposal.value, (tuple, list)) and proposal.value:
            longer = (*proposal.value, *proposal.value[-1:] * wish.value)[: wish.value]
            return replace(proposal, value=type(proposal.value)(longer))
        return None
    if wish.what == "kind":
        return _of_kind(proposal, wish.value) if wish.value != proposal.kind else None
    if wish.what == "dtype":
        return replace(proposal, dtype=wish.value)
    if wish.what == "shape":
        return _sized(proposal, wish.value)
    if wish.what == "rank":
        fewer = shape[max(0, len(shape) - wish.value) :]
        return _sized(proposal, (*(2,) * (wish.value - len(fewer)), *fewer))
    place, size = wish.value
    longer = (*shape, *(2,) * (place + 1 - len(shape)))
    return _sized(proposal, (*longer[:place], size, *longer[place + 1 :]))


def _of_kind(proposal: Proposal, kind: str) -> Proposal:
    return replace(proposal, kind=kind, domain="normal", gradient=proposal.gradient and kind in ("floating", "complex"))


def _other_numbers(value: object, sizes: list[int]) -> Iterator[object]:
    """A number, or one of several, replaced by a size that the message names; then one number more or fewer."""
    if isinstance(value, int) and not isinstance(value, bool):
        yield from (size for size in sizes if size != value)
    elif isinstance(value, (tuple, list)) and value and all(type(n) is int for n in value):
        for place in range(len(value)):
            yield from (type(value)((*value[:place], n, *value[place + 1 :])) for n in sizes if n != value[place])
        yield type(value)((*value, value[-1]))
        yield value[1:]
