"""Edge values: 0, ties, +-1e3, denormals. Each is put into one input while the others stay as they are."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from gradsmith.lab.lab import Lab
from gradsmith.lab.measure.gradient import moved
from gradsmith.lab.measure.oracle import own_forward
from gradsmith.lab.measure.values import finite
from gradsmith.lab.run import Run, forward
from gradsmith.lab.subject.arguments import Arguments, Leaf

Kind = Literal["zero", "tie", "large", "tiny"]


@dataclass(frozen=True)
class Edge:
    """A finite output whose gradient is not finite, although forward moves by a finite slope there."""

    kind: Kind
    words: str
    leaf: Leaf
    arguments: Arguments
    element: tuple[int, ...]
    value: float
    slope: float
    needless: bool  # autograd through the same forward is finite there


def edges(lab: Lab, kinds: tuple[Kind, ...]) -> Iterator[Edge]:
    """Edge values at which the gradient is infinite or NaN without need."""
    arguments = lab.precise[1]
    for leaf in arguments.differentiable:
        if leaf.tensor.is_complex() or not leaf.tensor.numel():
            continue
        for kind, words, values in _placed(leaf.tensor.detach()):
            if kind in kinds and (found := _look(lab, arguments, leaf, kind, words, values)):
                yield found
                break


def bounded_slope(lab: Lab, arguments: Arguments, leaf: Leaf, element: tuple[int, ...], v: dict[int, Tensor]) -> float:
    """The steepest one-sided slope of forward at one element; NaN where it grows without bound or is not defined."""
    unit = torch.zeros_like(leaf.tensor.detach())
    unit[element] = 1.0
    evaluate = moved(lab.precise[0], arguments, leaf, unit, lab.settings)
    here = evaluate(0.0)
    steepest: list[float] = []
    for h in (1e-4, 1e-6):
        for sign in (-1, 1):
            there = evaluate(sign * h)
            change = sum(float((v[o].double() * (there[o] - here[o])).sum()) for o in v)
            steepest.append(abs(change) / h)
    if not all(map(math.isfinite, steepest)):
        return math.nan
    coarse, fine = max(steepest[:2]), max(steepest[2:])
    # sqrt at 0 rises tenfold from one step to the next; |x| and the length of a vector do not rise at all.
    return fine if fine <= 2 * coarse + 1e-6 else math.nan


def _placed(x: Tensor) -> Iterator[tuple[Kind, str, Tensor]]:
    def with_first(value: float) -> Tensor:
        other = x.clone()
        other[(0,) * x.ndim] = value
        return other

    yield "zero", "where one element is 0", with_first(0.0)
    if x.ndim:
        row = x.clone()
        row[(0,) * max(1, x.ndim - 1)] = 0.0
        yield "zero", "where a row is 0", row
    yield "tiny", "where one element is 1e-310", with_first(1e-310)
    if x.ndim and x.shape[-1] > 1:
        tied = x.clone()
        tied[..., 1] = tied[..., 0]
        yield "tie", "where two elements of a row are equal", tied
    for value in (1e3, -1e3):
        if not (value < 0 <= float(x.min())):  # an input that is never negative is probably meant to be so
            yield "large", f"where one element is {value:g}", with_first(value)


def _look(lab: Lab, arguments: Arguments, leaf: Leaf, kind: Kind, words: str, values: Tensor) -> Edge | None:
    changed = arguments.replaced({leaf.position: values})
    try:
        run = forward(lab.precise[0], changed, seed=lab.settings.seed)
        if not all(finite(o) for o in run.outputs if o.is_floating_point()):
            return None
        v = run.normal(lab.generator(13))
        grad = run.gradients(v)[leaf.position]
    except Exception:  # forward may refuse the value in words
        return None
    if grad is None or bool(torch.isfinite(grad).all()):
        return None
    element = tuple(int(i) for i in torch.nonzero(~torch.isfinite(grad))[0])
    here = next(x for x in changed.leaves if x.position == leaf.position)
    slope = bounded_slope(lab, changed, here, element, v)
    if math.isnan(slope):
        return None
    needless = _finite_by_autograd(lab, run, leaf.position, v)
    return Edge(kind, words, here, changed, element, float(grad[element]), slope, needless)


def _finite_by_autograd(lab: Lab, run: Run, position: int, v: dict[int, Tensor]) -> bool:
    """Where PyTorch's own gradient of this forward is NaN as well, the custom one is no worse."""
    oracle = own_forward(lab.precise[0], run, lab.settings.seed, lab.settings.reference)
    if oracle is None:
        return True
    return all(bool(torch.isfinite(oracle.gradients(o, g)[position]).all()) for o, g in v.items())
