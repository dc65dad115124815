"""Gradients of a limit: a fixed point, a root, a solver that stops where its steps are small enough.

Forward stops a little before the limit, and its derivative is that of the passes it made; backward is the derivative of
the limit. Both are right, and they differ by what the last passes left undone. Differences do not see that as noise: nearby
inputs take as many passes, and forward is smooth there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from gradsmith.lab.measure.loops import left_undone
from gradsmith.lab.subject.arguments import Arguments
from gradsmith.lab.subject.target import Target

if TYPE_CHECKING:
    from gradsmith.lab.measure.gradient import Pair

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
    """Whether the element that disagrees is nothing beside the others, for both. What a loop brings to rest may be a product
    (a slack times its multiplier): then each factor is only known to the root of what was left undone.
    """
    m, root = pair.mismatch, math.sqrt(undone)
    if m is None or pair.off > root or not pair.claimed.numel():
        return False
    return max(abs(m.claimed), abs(m.true)) <= root * float(pair.claimed.abs().max())


def _off(pair: Pair) -> float:
    """The largest disagreement that was seen, as a share of the whole gradient."""
    m = pair.mismatch
    largest = float(pair.claimed.abs().max()) if m is not None and pair.claimed.numel() else 0.0
    element = abs(m.claimed - m.true) / largest if m is not None and largest else 0.0
    return max(pair.off, element)
