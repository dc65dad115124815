"""Other calls of the same subject, as the rest of a model makes them: other values, ids, options and sizes."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from gradsmith.lab.explore.defaults import with_defaults
from gradsmith.lab.explore.move import Move, applied, told
from gradsmith.lab.explore.moves import indices, options, sizes, values
from gradsmith.lab.lab import Lab
from gradsmith.lab.once import once
from gradsmith.lab.subject.arguments import Arguments
from gradsmith.lab.subject.foreign import foreign

_OF_A_KIND = 2


@dataclass(frozen=True)
class OtherCall:
    """Arguments that differ from the example in one way. `words` say how: "with dim 0 of 'x' at 3"."""

    arguments: Arguments
    words: str


@once
def other_calls(lab: Lab) -> list[OtherCall]:
    """At most six, those of the example's own sizes first. Whether forward accepts them is for the caller to find out."""
    return list(_made(lab))


def _made(lab: Lab) -> Iterator[OtherCall]:
    base = with_defaults(*lab.precise)
    for moves in _chosen(lab, base):
        try:
            arguments = applied(moves, base, lab.settings.seed + 41)
        except Exception:  # a move met values that it was not made for
            continue
        if arguments is not None:
            yield OtherCall(arguments, told(moves))


def _chosen(lab: Lab, base: Arguments) -> Iterator[Sequence[Move]]:
    yield [values.Redraw(leaf.name, leaf.position) for leaf in base.leaves if values.movable(leaf)]
    if foreign(lab) and not lab.isolated:  # other sizes and ids make a kernel read elsewhere
        return
    yield from ([move] for move in _first(indices.moves(lab, base), 1))
    yield from ([move] for move in _first(options.moves(lab, base), _OF_A_KIND))
    yield from ([move] for move in _first(sizes.moves(lab, base), _OF_A_KIND))


def _first(moves: Iterable[Move], count: int) -> Iterator[Move]:
    return itertools.islice((move for move in moves if not move.risky), count)
