"""Gradients of a limit: a fixed point, a root, a solver that stops where its steps are small enough.

Forward stops a little before the limit, and its derivative is that of the passes it made; backward is the derivative of
the limit. Both are right, and they differ by what the last passes left undone. Differences do not see that as noise: nearby
inputs take as many passes, and forward is smooth there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gradsmith.lab.measure.loops import left_undone
from gradsmith.lab.subject.arguments import Arguments
from gradsmith.lab.subject.target import Target

if TYPE_CHECKING:
    from gradsmith.lab.measure.gradient import Pair

_EPSILON = 1e-6  # of the largest element: what an epsilon in backward may leave of nothing
_MOST = 1e-2  # of the gradient: what is further off is wrong, however early a loop stopped


def allow_what_is_undone(target: Target, arguments: Arguments, seed: int, pairs: Sequence[Pair]) -> None:
    """Call right what is off by no more than the loops of forward left undone, and note how much that is."""
    close = [pair for pair in pairs if not pair.missing and 0 < _off(pair) <= _MOST and _suspect(pair)]
    if not close:
        return
    undone = left_undone(target, arguments, seed)
    for pair in close:
        if _off(pair) <= undone or _vanishes(pair, undone):
            pair.status, pair.mismatch, pair.undone = "right", None, undone


def _suspect(pair: Pair) -> bool:
    return pair.status == "wrong" or (pair.status == "right" and pair.lost_digits)


def _vanishes(pair: Pair, undone: float) -> bool:
    """Whether the element that disagrees is 0 in the limit, as far as forward knows it, and for backward a trace beside the others.

    Where a loop brings a product to nothing (a slack times its multiplier), backward divides one factor by the other, and
    whoever guards that with an epsilon returns a trace. An element that is small and not 0 is judged like any other.
    """
    m = pair.mismatch
    if m is None or not undone or not pair.claimed.numel():
        return False
    largest, trace = float(pair.claimed.abs().max()), abs(m.claimed)
    return pair.off <= _EPSILON and abs(m.true) <= min(undone * largest, 1e-2 * trace) and trace <= _EPSILON * largest


def _off(pair: Pair) -> float:
    """The largest disagreement that was seen, as a share of the whole gradient."""
    m = pair.mismatch
    largest = float(pair.claimed.abs().max()) if m is not None and pair.claimed.numel() else 0.0
    element = abs(m.claimed - m.true) / largest if m is not None and largest else 0.0
    return max(pair.off, element)
