"""The true gradient, element by element: from the exact oracle where differences confirm it, else from differences."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from gradsmith.lab import Lab, Pair
from gradsmith.lab.measure.differences import Probe, dot, slopes
from gradsmith.lab.measure.gradient import moved, typical_size
from gradsmith.lab.run import normal_like

_NOISE_LIMIT = 0.01  # as for the verdict: what is less certain proves nothing

_MOST = 384  # elements measured one by one; of larger inputs a sample
_RUNS = 32  # of forward, at most about, for one element
_SHARES = 5  # the causes ask for the truth about so often, for other grad_outputs and at another example


@dataclass(frozen=True)
class Truth:
    """The gradient of <v, output>, the mask of elements at which it was measured, and how far off it may be there.

    `error` is a share of the largest element: what forward's own rounding leaves uncertain.
    """

    values: Tensor
    known: Tensor
    error: float = 0.0


def dense_truth(lab: Lab, pair: Pair, v: Tensor) -> Truth | None:
    """The true gradient, element by element. None where it cannot be had."""
    exact = _from_oracle(lab, pair, v)
    if exact is not None:
        return Truth(exact, torch.ones(exact.shape, dtype=torch.bool))
    x = pair.leaf.tensor.detach()
    if not x.numel():
        return None
    wide = torch.complex128 if x.is_complex() else torch.float64
    truth = torch.zeros(x.shape, dtype=wide)
    errors = torch.full(x.shape, torch.inf, dtype=torch.float64)
    size = typical_size(x)
    for index in _chosen(lab, pair):
        # The real and the imaginary part of a gradient are the slopes along 1 and along i.
        for unit in (1.0, 1j) if x.is_complex() else (1.0,):
            e = torch.zeros_like(x).contiguous()
            e.view(-1)[index] = torch.tensor(unit * size, dtype=e.dtype)
            evaluate = moved(*lab.precise, pair.leaf, e, lab.settings)
            (slope,) = slopes(evaluate, [Probe(pair.output, v if v.is_complex() else v.double(), 1e3)])
            truth.view(-1)[index] += unit * slope.value / size
            worst = slope.error / size if unit == 1.0 else max(slope.error / size, float(errors.view(-1)[index]))
            errors.view(-1)[index] = worst
    scale = float(truth.nan_to_num().abs().max())
    known = torch.isfinite(truth) & (errors <= (_NOISE_LIMIT if lab.settings.noise else 1e-7) * scale)
    error = float(errors[known].max()) / scale if bool(known.any()) and scale else 0.0
    return Truth(truth.nan_to_num(), known, error)


def _chosen(lab: Lab, pair: Pair) -> list[int]:
    """The elements to measure, the same ones for every grad_output.

    Where runs are dear, or each element takes many because forward is noisy, a few have to do. The one that is known to be wrong
    is among them: where backward is right, every cause fits.
    """
    x, m = pair.leaf.tensor, pair.mismatch
    few = lab.budget.expensive or bool(lab.settings.noise)
    most = min(_MOST, max(4, lab.budget.diagnosis // (_SHARES * _RUNS))) if few else _MOST
    if x.numel() <= most:
        return list(range(x.numel()))
    drawn: list[int] = torch.randperm(x.numel(), generator=lab.generator(21)).tolist()
    known = m is not None and m.element is not None and len(m.element) == x.dim()
    wrong = [int(torch.arange(x.numel()).reshape(x.shape)[m.element])] if known and m is not None else []
    return [*wrong, *(i for i in drawn if i not in wrong)][:most]


@dataclass(frozen=True)
class Distance:
    """How far a claimed gradient is from the true one."""

    relative: float
    absolute: float


def approximation_error(lab: Lab, pair: Pair) -> Distance | None:
    """The distance in the Euclidean norm (relative) and at the worst element (absolute)."""
    measured = dense_truth(lab, pair, pair.v)
    if measured is None:
        return None
    truth, known = measured.values, measured.known
    off = (pair.claimed.to(truth.dtype) - truth)[known]
    size = float(torch.linalg.vector_norm(truth[known]))
    if not off.numel() or size == 0:
        return None
    return Distance(float(torch.linalg.vector_norm(off)) / size, float(off.abs().max()))


def _from_oracle(lab: Lab, pair: Pair, v: Tensor) -> Tensor | None:
    oracle = lab.gradient.oracle
    if oracle is None:
        return None
    grads = oracle.gradients(pair.output, v)[pair.leaf.position].detach()
    u = normal_like(grads, lab.generator(22)) * typical_size(pair.leaf.tensor)
    evaluate = moved(*lab.precise, pair.leaf, u, lab.settings)
    (slope,) = slopes(evaluate, [Probe(pair.output, v, max(float((grads * u).norm().abs()), 1e-300))])
    confirmed = abs(slope.value - dot(grads, u)) <= 10 * slope.error + 1e-6 * abs(slope.value)
    return grads.to(torch.complex128 if grads.is_complex() else torch.float64) if confirmed else None
