"""Directional differences: the slope of <v, f(x + t u)> at t = 0, with an honest error.

Central differences at three steps give two Richardson extrapolations; their distance is the truncation error, and the
round-off floor follows from the size of the outputs. Several scales of step are tried, the smallest error wins: large
steps suit smooth and low-precision functions, small ones step past the corners that a large input always has.

A function that swings many times within a step (the sine of 1e5) looks like noise around a small slope, with a small error.
So where no step gives a slope that stands out from its own error, finer ones are asked, and they can overrule it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from gradsmith.lab.pieces import pieces

Evaluate = Callable[[float], list[Tensor]]

# In units of the typical size of the input. float64: (1e-3)^4 truncation against 1e-16 / 1e-3 round-off.
STEP = 3e-2  # where numbers have few digits
_STEPS = {torch.float64: (1e-3, 1e-5, 1e-6, 1e-2, 1e-1), torch.float32: (STEP, 1e-1, 1e-2, 3e-1)}
_FINER = {torch.float64: (1e-7, 1e-8), torch.float32: (1e-3, 1e-4, 1e-5, 1e-6)}
GOOD_ENOUGH = 1e-9
_PLAINLY = 1e-3  # an error below this share of a disagreement leaves no doubt about it
NARROW = 1e-12  # forward's numbers have fewer digits than those of float64
_OFNARROW = 2e3  # times that precision, an error is as small as steps of a sensible length can make it
_GROWS = 10.0  # times the error at a coarser step: truncation shrinks with the step, noise grows
_TRACE = 1e-6  # of the outputs
_STANDS_OUT = 0.01  # a slope with an error below this share of itself is no accident


@dataclass(frozen=True)
class Slope:
    """A measured derivative: the value, and how far off it may be (the rounding inside forward is estimated: judges take
    several times the error)."""

    value: float
    error: float


@dataclass(frozen=True)
class Probe:
    """A question: the slope of <v, output>; `scale` is the size of derivative that matters for the answer.

    `claimed` is what somebody says it is: where the slope is plainly another, no more digits of it are needed.
    """

    output: int
    v: Tensor
    scale: float
    claimed: float | None = None

    def answered_by(self, slope: Slope, eps: float) -> bool:
        """Whether no more digits are needed. In a narrow type there are no more to be had once claim and slope agree."""
        off = abs(slope.value - self.claimed) if self.claimed is not None else 0.0
        if slope.error <= max(GOOD_ENOUGH * self.scale, _PLAINLY * off):
            return True
        if eps <= NARROW or self.claimed is None:
            return False
        nothing = slope.value == 0 == self.claimed  # numbers on a grid stay where they are, or move
        agrees = off <= 3 * slope.error <= 3 * attainable(eps) * self.scale
        return nothing or agrees or (_stands_out(slope) and slope.error <= _STANDS_OUT * off)


def precision(evaluate: Evaluate, dtype: torch.dtype) -> float:
    """What a number that comes out is rounded to, as a share of it: by its type, or by the noise that was measured."""
    return max(torch.finfo(dtype).eps, getattr(evaluate, "noise", 0.0))


def attainable(eps: float) -> float:
    """The certainty, as a share of the slope, beyond which numbers of this precision have nothing more to say."""
    return _OFNARROW * eps


def dot(a: Tensor, b: Tensor) -> float:
    """The real inner product; for complex numbers Re<a, b>, which is how PyTorch defines gradients (Wirtinger)."""
    if a.is_complex() or b.is_complex():
        a, b = (torch.view_as_real(t.to(torch.complex128).resolve_conj()) for t in (a, b))
    return sum(float((p.double() * q.double()).sum()) for p, q in pieces(a, b))


def slopes(evaluate: Evaluate, probes: Sequence[Probe], dtype: torch.dtype = torch.float64) -> list[Slope]:
    """The slope for every probe, each with its best step."""
    eps = precision(evaluate, dtype)
    kind = torch.float64 if eps < NARROW else torch.float32
    found: list[dict[float, _Difference]] = [{} for _ in probes]
    for h in _STEPS[kind]:
        _measure(evaluate, probes, h, eps, found)
        candidates = [_with_errors(of_probe, eps) for of_probe in found]
        best = [min(of_probe.values(), key=lambda s: s.error) for of_probe in candidates]
        if all(p.answered_by(s, eps) for s, p in zip(best, probes)):
            return best
    if any(_in_doubt(of_probe) for of_probe in candidates):
        for h in _FINER[kind]:
            _measure(evaluate, probes, h, eps, found)
        candidates = [_with_errors(of_probe, eps) for of_probe in found]
    return [_agreed(of_probe) for of_probe in candidates]


@dataclass(frozen=True)
class _Difference:
    """A slope at one step: how far two extrapolations are apart, and what a relative rounding of 1 would do to it."""

    value: float
    spread: float
    rounding: float
    eps: float  # of the numbers that came out
    still: bool


def _measure(
    evaluate: Evaluate, probes: Sequence[Probe], h: float, eps: float, found: list[dict[float, _Difference]]
) -> None:
    steps = [_central_differences(evaluate, probes, step, eps) for step in (h, h / 2, h / 4)]
    for k, (d1, d2, d4) in enumerate(zip(*steps)):
        coarse, fine = (4 * d2.value - d1.value) / 3, (4 * d4.value - d2.value) / 3
        coarsest = min(1.0, d1.eps, d2.eps, d4.eps)
        found[k][h] = _Difference(fine, abs(fine - coarse), d4.rounding, coarsest, all(d.still for d in (d1, d2, d4)))


def _central_differences(evaluate: Evaluate, probes: Sequence[Probe], step: float, eps: float) -> list[_Difference]:
    """One central difference for every probe. Nothing of the outputs is left when the next step is taken."""
    plus, minus = evaluate(step), evaluate(-step)
    found = []
    for probe in probes:
        ahead, behind = plus[probe.output], minus[probe.output]
        value = sum(dot(v, a - b) for v, a, b in pieces(probe.v, ahead, behind)) / (2 * step)
        still = torch.equal(ahead, behind)
        found.append(_Difference(value, 0.0, _rounding(probe, ahead, step), eps_of((ahead, behind), eps), still))
    return found


def _with_errors(found: dict[float, _Difference], eps: float) -> dict[float, Slope]:
    """The slope at each step with its error.

    Noise in the outputs is the same at every step: what a finer step shows of it, a coarser one has, over its length. (Two
    extrapolations may agree by accident; at all steps at once they do not.) So has a still finer one, if it was noise: what
    grows as steps shrink, and is next to nothing beside the outputs (a swing grows, too). So is their precision, if they
    move at all.
    """
    if not all(d.still for d in found.values()):
        eps = min(d.eps for d in found.values())
    errors = {h: d.spread + eps * d.rounding for h, d in found.items()}
    finite = {h: e for h, e in errors.items() if math.isfinite(e) and math.isfinite(found[h].value)}
    falling = itertools.pairwise(sorted(finite, reverse=True))
    grown = [h for coarser, h in falling if _GROWS * finite[coarser] < finite[h] <= _TRACE * found[h].rounding]
    noise = max((finite[h] * h for h in grown), default=0.0)
    return {
        h: Slope(d.value, max(noise / h, *(e * g / h for g, e in finite.items() if g <= h)))
        if h in finite
        else Slope(math.nan, math.inf)
        for h, d in found.items()
    }


def _in_doubt(found: dict[float, Slope]) -> bool:
    """Whether the slope with the smallest error may be an accident: it does not stand out, or one at a finer step objects."""
    step, best = min(found.items(), key=lambda item: item[1].error)
    if not _stands_out(best):
        return best.value != 0
    return any(h < step and _stands_out(s) and _apart(s, best) for h, s in found.items())


def _stands_out(slope: Slope) -> bool:
    return slope.error <= _STANDS_OUT * abs(slope.value)


def _agreed(found: dict[float, Slope]) -> Slope:
    """The slope with the smallest error, unless finer steps show that the function swings within its step."""
    step, best = min(found.items(), key=lambda item: item[1].error)
    if not _in_doubt(found):
        return best
    against = [s for h, s in found.items() if h < step and s.error < abs(s.value) / 3 and _apart(s, best)]
    # One may be an accident of noise, and then nothing is known; two that agree are not.
    confirmed = [s for s in against if any(s is not other and not _apart(s, other) for other in against)]
    if confirmed:
        return min(confirmed, key=lambda s: s.error)
    return Slope(best.value, max((abs(s.value - best.value) for s in against), default=best.error))


def _apart(a: Slope, b: Slope) -> bool:
    return abs(a.value - b.value) > 3 * (a.error + b.error)


def one_sided(evaluate: Evaluate, probe: Probe, h: float, eps: float) -> tuple[Slope, Slope]:
    """Slopes to the left and to the right, each extrapolated from two steps."""
    base = evaluate(0.0)[probe.output]
    sides = []
    for sign in (-1.0, 1.0):
        d1 = dot(probe.v, evaluate(sign * h)[probe.output] - base) / (sign * h)
        d2 = dot(probe.v, evaluate(sign * h / 2)[probe.output] - base) / (sign * h / 2)
        value = 2 * d2 - d1
        sides.append(Slope(value, abs(value - d2) / 4 + eps * _rounding(probe, base, h / 2)))
    return sides[0], sides[1]


def eps_of(outputs: Sequence[Tensor], eps: float) -> float:
    """The precision the outputs really have: a forward may compute in float32 whatever it is given.

    Such numbers lie on a grid: a small step does not move them, and differences agree exactly that are all equally off.
    """
    real = [torch.view_as_real(o.resolve_conj()) if o.is_complex() else o for o in outputs]
    if all(torch.equal(o.round(), o) for whole in real for (o,) in pieces(whole)):  # the same numbers in every type
        return eps
    found = eps
    for kind in (torch.float32, torch.bfloat16, torch.float16):
        if all(torch.equal(o.to(kind).to(o.dtype), o) for whole in real for (o,) in pieces(whole)):
            found = max(found, torch.finfo(kind).eps)
        elif kind is torch.float32:
            return eps
    return found


def central(evaluate: Evaluate, probes: Sequence[Probe], h: float) -> list[float]:
    """One central difference for every probe, without a word on its error."""
    plus, minus = evaluate(h), evaluate(-h)
    return [dot(p.v, plus[p.output] - minus[p.output]) / (2 * h) for p in probes]


def at_step(evaluate: Evaluate, probes: Sequence[Probe], h: float, eps: float) -> list[Slope]:
    """The slope for every probe from the steps h, h / 2 and h / 4."""
    found: list[dict[float, _Difference]] = [{} for _ in probes]
    _measure(evaluate, probes, h, eps, found)
    return [_with_errors(of_probe, eps)[h] for of_probe in found]


def _rounding(probe: Probe, output: Tensor, step: float) -> float:
    # 8: outputs are rarely rounded correctly; sums inside forward lose a few more bits than the last rounding.
    parts = pieces(probe.v, output.detach())
    norms = [float(torch.linalg.vector_norm((v.abs() * out.abs()).double())) for v, out in parts]
    # A step is as long as the input is large, times h: rounding the moved input changes it by eps / h of itself.
    moved = probe.scale / 2 if math.isfinite(probe.scale) else 0.0  # what backward says may be NaN, and forward is not
    return (8 * math.hypot(*norms) + moved) / step
