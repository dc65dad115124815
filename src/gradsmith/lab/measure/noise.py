"""How much forward's own rounding moves its outputs, measured: what a kernel computes in, its arguments do not tell.

Differences of high order along tiny steps leave nothing of a smooth function; what is left is noise (Moré and Wild,
Estimating Computational Noise, 2011).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import torch
from torch import Tensor

from gradsmith.lab.measure.differences import dot

STEPS = tuple(range(-3, 4))
_ORDERS = (3, 4)


def relative_noise(outputs: Sequence[Sequence[Tensor]], v: dict[int, Tensor]) -> float:
    """The noise of <v, output>, as a share of the sizes that are summed; `outputs` are those at equally spaced points.

    >>> flat = [[torch.tensor([1.0 + 0.5 * t], dtype=torch.float64)] for t in STEPS]
    >>> relative_noise(flat, {0: torch.ones(1, dtype=torch.float64)}) < 1e-15
    True
    """
    worst = 0.0
    for number, weight in v.items():
        middle = outputs[len(outputs) // 2][number]
        size = float(torch.linalg.vector_norm((weight.abs() * middle.abs()).double()))
        values = [dot(weight, one[number] - middle) for one in outputs]
        if size and all(math.isfinite(x) for x in values):
            worst = max(worst, _noise(values) / size)
    return worst


def _noise(values: Sequence[float]) -> float:
    """The standard deviation that differences of third and fourth order show."""
    row, found = list(values), []
    for order in range(1, max(_ORDERS) + 1):
        row = [b - a for a, b in itertools.pairwise(row)]
        if order in _ORDERS:
            share = math.factorial(order) ** 2 / math.factorial(2 * order)
            found.append(math.sqrt(share * sum(x * x for x in row) / len(row)))
    return max(found)
