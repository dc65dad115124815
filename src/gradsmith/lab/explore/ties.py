"""Equal elements, moved together: their gradients have to add up to the slope of forward."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from gradsmith.lab.explore.drawing import domains_of
from gradsmith.lab.explore.trial import is_autograds, worth_exploring
from gradsmith.lab.lab import Lab
from gradsmith.lab.measure.differences import Evaluate, Probe, dot, one_sided
from gradsmith.lab.measure.gradient import moved, typical_size
from gradsmith.lab.measure.screening import same_as_autograd
from gradsmith.lab.run import forward
from gradsmith.lab.subject.arguments import Arguments, Leaf

_MOST_ROWS = 4
# A forward that rounds to float32 on its way is a staircase to the small step, and is seen as a slope by the large one.
_STEPS = (1e-6, 1e-3)
Element = tuple[int, ...]


@dataclass(frozen=True)
class Tie:
    """Equal elements whose gradients add up to `claimed`, outside the slopes of forward (`low` to `high`)."""

    leaf: Leaf
    elements: list[Element]
    claimed: float
    low: float
    high: float
    given: bool


def ties(lab: Lab) -> Iterator[Tie]:
    """Ties of the example that got a wrong share; where it has none, two elements of the first row are made equal."""
    arguments = lab.precise[1]
    for leaf in arguments.differentiable:
        if leaf.tensor.is_complex() or leaf.tensor.ndim == 0 or leaf.tensor.shape[-1] < 2:
            continue
        groups = list(_equal(leaf.tensor.detach()))
        if groups:
            yield from _wrong(lab, arguments, leaf, groups, given=True)
        elif lab.level != "quick":
            yield from _made(lab, arguments, leaf)


def _made(lab: Lab, arguments: Arguments, leaf: Leaf) -> Iterator[Tie]:
    if not worth_exploring(lab):
        return
    held = domains_of(leaf.tensor, known=leaf.domains)
    # Equal largest and equal smallest elements: ties that a maximum, a minimum and a sort all see.
    for order in (-1, 0):
        tied = leaf.tensor.detach().clone()
        row = tied.reshape(-1, tied.shape[-1])[0]
        ranks = row.argsort()
        first, second = (int(ranks[-1]), int(ranks[-2])) if order else (int(ranks[0]), int(ranks[1]))
        flat = tied.reshape(-1, tied.shape[-1]).clone()
        flat[0, second] = flat[0, first]
        made = flat.reshape(tied.shape)
        if any(not domain.contains(made.double()) for domain in held):
            continue  # a symmetric matrix with a tie in one row is not symmetric any more: that is another question
        changed = arguments.replaced({leaf.position: made})
        here = next(x for x in changed.leaves if x.position == leaf.position)
        head = (0,) * (tied.ndim - 1)
        try:
            yield from _wrong(lab, changed, here, [[(*head, first), (*head, second)]], given=False)
        except Exception:  # forward may refuse equal values
            continue


def _equal(x: Tensor) -> Iterator[list[Element]]:
    """Sets of equal elements within one row, a few of them. Rows of one value only are constants, not ties."""
    rows = x.reshape(-1, x.shape[-1])
    shape = x.shape[:-1]
    for number in range(min(_MOST_ROWS, rows.shape[0])):
        row = rows[number]
        for value in row.unique():
            hits = torch.nonzero(row == value).flatten().tolist()
            if 1 < len(hits) < row.numel():
                head = tuple(int(i) for i in torch.unravel_index(torch.tensor(number), shape)) if shape else ()
                yield [(*head, hit) for hit in hits]


def _wrong(lab: Lab, arguments: Arguments, leaf: Leaf, groups: list[list[Element]], *, given: bool) -> Iterator[Tie]:
    target = lab.precise[0]
    run = forward(target, arguments, seed=lab.settings.seed)
    v = run.normal(lab.generator(17))
    grads = run.gradients(v)
    grad = grads[leaf.position]
    if grad is None or not bool(torch.isfinite(grad).all()):
        return
    if is_autograds(lab) and same_as_autograd(run, v, grads, lab.settings):
        return
    size = typical_size(leaf.tensor)
    for elements in groups:
        u = torch.zeros_like(leaf.tensor.detach())
        for element in elements:
            u[element] = size
        evaluate = functools.cache(moved(target, arguments, leaf, u, lab.settings))
        claimed = dot(grad, u) / size
        probes = [Probe(o, v[o], 1.0) for o in run.differentiable]
        seen: list[_Slopes] = []
        for step in _STEPS:
            seen.append(_slopes(evaluate, probes, size, step))
            low, high = min(s.low for s in seen), max(s.high for s in seen)
            if not math.isfinite(low + high):
                break  # forward has no value beside the tie
            slack = max(s.slack for s in seen) + 1e-4 * (abs(claimed) + abs(low) + abs(high))
            if low - slack <= claimed <= high + slack:
                break  # another step can only widen the interval
        else:
            yield Tie(leaf, elements, claimed, low, high, given)
            return


@dataclass(frozen=True)
class _Slopes:
    """The one-sided slopes of forward, summed over its outputs, and how far off they may be."""

    low: float
    high: float
    slack: float


def _slopes(evaluate: Evaluate, probes: list[Probe], size: float, step: float) -> _Slopes:
    low = high = slack = 0.0
    for probe in probes:
        left, right = one_sided(evaluate, probe, step, torch.finfo(torch.float64).eps)
        low += min(left.value, right.value) / size
        high += max(left.value, right.value) / size
        slack += 10 * (left.error + right.error) / size
    return _Slopes(low, high, slack)
