"""Difference formulas: nodes, weights, order, and how much of the noise they let through."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


@dataclass(frozen=True)
class Stencil:
    """The derivative at 0 from values at `nodes` (in steps); node 0 is the point itself."""

    nodes: tuple[int, ...]

    @cached_property
    def weights(self) -> Array:
        return _weights(self.nodes)

    @cached_property
    def order(self) -> int:
        """The power of the step with which the error falls: a symmetric formula gains one."""
        n = len(self.nodes)
        moments = [float(self.weights @ np.array([float(node) ** k for node in self.nodes])) for k in range(n, n + 2)]
        return n - 1 if abs(moments[0]) > 1e-9 else n

    @cached_property
    def noise(self) -> float:
        """Noise of size 1 in the values becomes this much in the derivative, for a step of 1."""
        return float(np.linalg.norm(self.weights))

    def moved(self) -> tuple[int, ...]:
        """The nodes that cost an evaluation."""
        return tuple(n for n, w in zip(self.nodes, self.weights) if n != 0 and abs(w) > 1e-12)


@cache
def _weights(nodes: tuple[int, ...]) -> Array:
    n = len(nodes)
    powers = np.array([[float(node) ** k for node in nodes] for k in range(n)])
    wanted = np.zeros(n)
    wanted[1] = 1.0
    return np.linalg.solve(powers, wanted)


# Of seven points: central where forward accepts both sides, else to the side it accepts.
SEVEN: dict[int, tuple[int, ...]] = {
    0: (-3, -2, -1, 0, 1, 2, 3),
    1: (0, 1, 2, 3, 4, 5, 6),
    -1: (-6, -5, -4, -3, -2, -1, 0),
}
# At no multiple of the step, and exact in ten bits: multiples of the golden ratio, inside the seven.
BETWEEN: dict[int, tuple[float, float]] = {
    0: (633 / 1024, -1657 / 1024),
    1: (2681 / 1024, 4338 / 1024),
    -1: (-2681 / 1024, -4338 / 1024),
}
_FIVE: dict[int, tuple[int, ...]] = {0: (-2, -1, 0, 1, 2), 1: (0, 1, 2, 3, 4), -1: (-4, -3, -2, -1, 0)}
_THREE: dict[int, tuple[int, ...]] = {0: (-1, 0, 1), 1: (0, 1, 2), -1: (-2, -1, 0)}
_TWO: dict[int, tuple[int, ...]] = {0: (0, 1), 1: (0, 1), -1: (-1, 0)}


def stencil(method: str, side: int = 0) -> Stencil:
    """The formula of a method, to the side of the point on which it may step (0: both).

    >>> stencil("central").weights.tolist(), stencil("forward").order, stencil("richardson").order
    ([-0.5, 0.0, 0.5], 1, 4)
    """
    table = {"forward": _TWO, "central": _THREE, "richardson": _FIVE, "seven": SEVEN}[method]
    return Stencil(table[side])


def noise_in(values: Array) -> Array:
    """The size of the noise in seven equally spaced values: what is left in differences of order five and six."""
    found: list[Array] = []
    for order in (5, 6):
        left = np.diff(values, n=order, axis=0) / math.sqrt(math.comb(2 * order, order))
        found.extend(left)
    size: Array = np.sqrt(np.mean(np.square(np.array(found)), axis=0))
    return size


@cache
def _between(nodes: tuple[int, ...], places: tuple[float, ...]) -> Array:
    """Rows of weights: the polynomial through the values at `nodes`, at each of `places`."""
    powers = np.array([[float(node) ** k for k in range(len(nodes))] for node in nodes])
    wanted = np.array([[place**k for k in range(len(nodes))] for place in places])
    return np.linalg.solve(powers.T, wanted.T).T


def off_the_curve(nodes: Sequence[int], values: Array, places: Sequence[float], between: Array) -> Array:
    """The size of the noise as two more points show it: how far they are from the polynomial through the seven.

    >>> off_the_curve((0, 1, 2), np.array([[0.0], [1.0], [4.0]]), (0.5, 1.5), np.array([[0.25], [2.25]]))
    array([0.])
    """
    weights = _between(tuple(nodes), tuple(places))
    left = (between - weights @ values) / np.sqrt(1 + (weights**2).sum(axis=1))[:, None]
    size: Array = np.sqrt(np.mean(np.square(left), axis=0))
    return size


def derivative(nodes: Sequence[int], values: Array) -> Array:
    """The derivative at 0 from values (one row per node) at these nodes."""
    return np.tensordot(_weights(tuple(nodes)), values, axes=1)
