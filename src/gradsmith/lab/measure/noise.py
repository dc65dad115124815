"""How much forward's own rounding moves its outputs, measured: what a kernel computes in, its arguments do not tell.

Differences of high order along tiny steps leave nothing of a smooth function; what is left is noise (Moré and Wild,
Estimating Computational Noise, 2011).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from gradsmith.lab.measure.differences import dot
from gradsmith.lab.pieces import pieces

STEPS = tuple(range(-3, 4))
_ORDERS = (3, 4)


def relative_noise(evaluate: Callable[[int], Sequence[Tensor]], v: dict[int, Tensor]) -> float:
    """The noise of <v, output>, as a share of the sizes that are summed; `evaluate` gives the outputs at each of `STEPS`.

    >>> flat = lambda t: [torch.tensor([1.0 + 0.5 * t], dtype=torch.float64)]
    >>> relative_noise(flat, {0: torch.ones(1, dtype=torch.float64)}) < 1e-15
    True
    """
    worst = 0.0
    middle = evaluate(0)
    moved: dict[int, list[float]] = {number: [] for number in v}
    for step in STEPS:  # one at a time: outputs may be large
        outputs = evaluate(step) if step else middle
        for number, weight in v.items():
            moved[number].append(dot(weight, outputs[number] - middle[number]))
    for number, weight in v.items():
        values = moved[number]
        size = _norm(weight, middle[number])
        if size and all(math.isfinite(x) for x in values):
            worst = max(worst, _noise(values) / size)
    return worst


def _norm(a: Tensor, b: Tensor) -> float:
    return math.hypot(*(float(torch.linalg.vector_norm((p.abs() * q.abs()).double())) for p, q in pieces(a, b)))


def _noise(values: Sequence[float]) -> float:
    """The standard deviation that differences of third and fourth order show."""
    row, found = list(values), []
    for order in range(1, max(_ORDERS) + 1):
        row = [b - a for a, b in itertools.pairwise(row)]
        if order in _ORDERS:
            share = math.factorial(order) ** 2 / math.factorial(2 * order)
            found.append(math.sqrt(share * sum(x * x for x in row) / len(row)))
    return max(found)
