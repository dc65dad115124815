"""Directional differences: the slope of <v, f(x + t u)> at t = 0, with an honest error.

Central differences at three steps give two Richardson extrapolations; their distance is the truncation error, and the
round-off floor follows from the size of the outputs. Several scales of step are tried, the smallest error wins: large
steps suit smooth and low-precision functions, small ones step past the corners that a large input always has.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

Evaluate = Callable[[float], list[Tensor]]

# In units of the typical size of the input. float64: (1e-3)^4 truncation against 1e-16 / 1e-3 round-off.
_STEPS = {torch.float64: (1e-3, 1e-5, 1e-6, 1e-2, 1e-1), torch.float32: (3e-2, 1e-1, 1e-2, 3e-1)}
GOOD_ENOUGH = 1e-9


@dataclass(frozen=True)
class Slope:
    """A measured derivative: the value, and how far off it may be."""

    value: float
    error: float


@dataclass(frozen=True)
class Probe:
    """A question: the slope of <v, output>; `scale` is the size of derivative that matters for the answer."""

    output: int
    v: Tensor
    scale: float


def dot(a: Tensor, b: Tensor) -> float:
    """The real inner product; for complex numbers Re<a, b>, which is how PyTorch defines gradients (Wirtinger)."""
    if a.is_complex() or b.is_complex():
        a, b = (torch.view_as_real(t.to(torch.complex128).resolve_conj()) for t in (a, b))
    return float((a.double() * b.double()).sum())


def slopes(evaluate: Evaluate, probes: Sequence[Probe], dtype: torch.dtype = torch.float64) -> list[Slope]:
    """The slope for every probe, each with its best step."""
    best = [Slope(math.nan, math.inf) for _ in probes]
    eps = torch.finfo(dtype).eps
    for h in _STEPS[torch.float64 if dtype == torch.float64 else torch.float32]:
        found = at_step(evaluate, probes, h, eps)
        best = [new if new.error < old.error else old for old, new in zip(best, found)]
        if all(s.error <= GOOD_ENOUGH * p.scale for s, p in zip(best, probes)):
            break
    return best


def one_sided(evaluate: Evaluate, probe: Probe, h: float, eps: float) -> tuple[Slope, Slope]:
    """Slopes to the left and to the right, each extrapolated from two steps."""
    base = evaluate(0.0)[probe.output]
    sides = []
    for sign in (-1.0, 1.0):
        d1 = dot(probe.v, evaluate(sign * h)[probe.output] - base) / (sign * h)
        d2 = dot(probe.v, evaluate(sign * h / 2)[probe.output] - base) / (sign * h / 2)
        value = 2 * d2 - d1
        sides.append(Slope(value, abs(value - d2) / 4 + _round_off(probe, base, h / 2, eps)))
    return sides[0], sides[1]


def central(evaluate: Evaluate, probes: Sequence[Probe], h: float) -> list[float]:
    """One central difference for every probe, without a word on its error."""
    plus, minus = evaluate(h), evaluate(-h)
    return [dot(p.v, plus[p.output] - minus[p.output]) / (2 * h) for p in probes]


def at_step(evaluate: Evaluate, probes: Sequence[Probe], h: float, eps: float) -> list[Slope]:
    """The slope for every probe from the steps h, h / 2 and h / 4."""
    differences: list[list[float]] = [[] for _ in probes]
    floors = [0.0] * len(probes)
    for step in (h, h / 2, h / 4):
        plus, minus = evaluate(step), evaluate(-step)
        for k, probe in enumerate(probes):
            change = plus[probe.output] - minus[probe.output]
            differences[k].append(dot(probe.v, change) / (2 * step))
            floors[k] = _round_off(probe, plus[probe.output], step, eps)
    out = []
    for (d1, d2, d4), floor in zip(differences, floors):
        coarse, fine = (4 * d2 - d1) / 3, (4 * d4 - d2) / 3
        error = abs(fine - coarse) + floor
        out.append(Slope(fine, error) if math.isfinite(fine) and math.isfinite(error) else Slope(math.nan, math.inf))
    return out


def _round_off(probe: Probe, output: Tensor, step: float, eps: float) -> float:
    # 8: outputs are rarely rounded correctly; sums inside forward lose a few more bits than the last rounding.
    weighted = (probe.v.abs() * output.detach().abs()).double()
    return 8 * eps * float(torch.linalg.vector_norm(weighted)) / step
