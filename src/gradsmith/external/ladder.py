"""The derivative of foreign code along directions, with its error: seven points, at one step after the other.

Seven equally spaced values give a derivative of order six, two of lower order whose distance from it shows the
truncation, and the noise (what is left in the highest differences). Values on a grid (rounded results), or with a period
that the step is a multiple of, may lie on a smooth curve by accident: two more points, at no multiple of the step, tell. A coarse step is tried first: smooth functions are
done with it. Then finer ones, because what looks like noise may be a function that swings within the step; then coarser.
Noise of a finer step is also noise of a coarser one, never the other way round:
a coarse step that shows far more than the finer ones does not resolve the function, and is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from gradsmith.external.stencil import BETWEEN, SEVEN, Array, Stencil, derivative, noise_in, off_the_curve, stencil

# One row of displacements per move -> one row of values per move; NaN where the function has none.
Phi = Callable[[Sequence[Array]], Array]

# Powers of two: x + h is exact, and no grid of decimals falls in with them.
_EXPONENTS = (-7, -10, -13, -17, -20, -23, -27, -5, -3)
_GOOD = 1e-10  # of the largest derivative: more digits would not be seen in any error that is stated
_SURE = 2.0  # standard deviations, of the largest noise that any step showed
_UNLIKE_NOISE = 10.0  # no accident of a few values
EPS = float(np.finfo(np.float64).eps)


@dataclass
class Level:
    """What seven points at one step said, for every row."""

    step: float
    side: int
    values: Array  # (7, rows), the point itself among them
    value: Array
    truncation: Array
    noise: Array
    still: bool


@dataclass
class DirectionalSlope:
    """The derivative along one direction (rows: of each independent row), its error, and the noise of the function."""

    value: Array
    error: Array
    noise: Array
    side: int
    levels: dict[float, Level] = field(repr=False)

    @property
    def found(self) -> bool:
        return bool(np.isfinite(self.error).all())


def slopes(
    phi: Phi,
    directions: Sequence[Array],
    weights: Sequence[float],
    base: Array,
    size: Array,
    enough: float = _GOOD,
    reach: Sequence[int] = (),
    eps: float = EPS,
) -> list[DirectionalSlope]:
    """The derivative of phi along each direction. `weights` turns a derivative into one of the input's own units;
    `size` is the size of the terms that phi sums, which rounding goes with; an error below `enough` of the largest
    derivative ends the search. `reach` is, for each direction, the power of two up to which a step may be lengthened where
    noise asks for it: an element near 0 among large ones needs a step of their size. `eps` is the precision that the outputs really have.
    """
    with np.errstate(all="ignore"):  # a long step may overflow; then it is not the one that is taken
        return _searched(phi, directions, weights, base, size, enough, list(reach) or [0] * len(directions), eps)


def _searched(
    phi: Phi,
    directions: Sequence[Array],
    weights: Sequence[float],
    base: Array,
    size: Array,
    enough: float,
    reach: Sequence[int],
    eps: float,
) -> list[DirectionalSlope]:
    levels: list[dict[float, Level]] = [{} for _ in directions]
    done = [False] * len(directions)
    for exponent in (*_EXPONENTS, *range(0, max(reach) + 1, 3)):
        step = 2.0**exponent
        open_ = [k for k in range(len(directions)) if not done[k]]
        if not open_:
            break
        if exponent >= 0:
            open_ = [k for k in open_ if exponent <= reach[k] and _noisy(_best(levels[k], base, size, eps))]
        for k, level in zip(open_, _level(phi, [directions[k] for k in open_], step, base)):
            if level is not None:
                levels[k][step] = level
        best = [_best(of_one, base, size, eps) for of_one in levels]
        scale = max((w * float(np.abs(s.value).max()) for w, s in zip(weights, best) if s.found), default=0.0)
        for k in open_:
            good = best[k].found and weights[k] * float(best[k].error.max()) <= enough * scale
            done[k] = good and not _suddenly_quiet(levels[k], step)
    return [_best(of_one, base, size, eps) for of_one in levels]


def _suddenly_quiet(levels: dict[float, Level], step: float) -> bool:
    """Whether this step shows far less noise than the one before: that may be an accident, and one more step will tell."""
    coarser = [h for h in levels if h > step]
    if not coarser or step not in levels:
        return False
    return bool((levels[min(coarser)].noise > _UNLIKE_NOISE * levels[step].noise).any()) and step > 2.0**-27


def _noisy(slope: DirectionalSlope) -> bool:
    """Whether a longer step could help: the slope does not stand out from its error by what float32 has of digits."""
    return not slope.found or bool((slope.error > 1e-6 * np.abs(slope.value)).any())


def _level(phi: Phi, directions: Sequence[Array], step: float, base: Array) -> list[Level | None]:
    """Seven points along each direction: on both sides, else on one."""
    found: dict[int, Level | None] = {}
    for side in (0, 1, -1):
        asked = [k for k in range(len(directions)) if found.get(k) is None]
        if not asked:
            break
        nodes = [*(n for n in SEVEN[side] if n != 0), *BETWEEN[side]]
        values = phi([n * step * directions[k] for k in asked for n in nodes])
        for position, k in enumerate(asked):
            mine = values[position * len(nodes) : (position + 1) * len(nodes)]
            found[k] = _read(mine[:-2], mine[-2:], step, side, base) if np.isfinite(mine).all() else None
    return [found.get(k) for k in range(len(directions))]


def _read(values: Array, between: Array, step: float, side: int, base: Array) -> Level:
    nodes = SEVEN[side]
    all_values = np.insert(values, nodes.index(0), base, axis=0)
    high = derivative(nodes, all_values) / step
    of_lower = [_inner(nodes, all_values, stencil(name, side).nodes) / step for name in ("richardson", "central")]
    first, second = np.abs(high - of_lower[0]), np.abs(of_lower[0] - of_lower[1])
    with np.errstate(divide="ignore", invalid="ignore"):
        falling = np.where(second > 0, np.minimum(1.0, first / second), 1.0)
    # Half of what the series promises: one small difference may be an accident.
    truncation = first * np.sqrt(falling)
    jumps = np.abs(np.diff(all_values, axis=0))
    # Where some neighbours are equal and others not, the values lie on a grid, and the jumps are as wide as it is.
    noise = np.maximum(noise_in(all_values), off_the_curve(nodes, all_values, BETWEEN[side], between))
    noise = np.where((jumps == 0).any(axis=0), np.maximum(noise, jumps.max(axis=0) / 2), noise)
    return Level(step, side, all_values, high, truncation, noise, not jumps.any() and bool((between == base).all()))


def _inner(nodes: tuple[int, ...], values: Array, inner: tuple[int, ...]) -> Array:
    return derivative(inner, values[[nodes.index(n) for n in inner]])


def _best(levels: dict[float, Level], base: Array, size: Array, eps: float) -> DirectionalSlope:
    """Of every row, the step with the smallest error."""
    nothing = np.full(base.shape, np.nan)
    moving = {h: level for h, level in levels.items() if not level.still}
    if not moving:
        if not levels:
            return DirectionalSlope(nothing, np.full(base.shape, np.inf), nothing, 0, levels)
        # It never moved: the derivative is 0, as far as the longest step can tell.
        longest = max(levels)
        return DirectionalSlope(
            np.zeros_like(base), eps * size / longest, np.zeros_like(base), levels[longest].side, levels
        )
    value, error, noise = nothing.copy(), np.full(base.shape, np.inf), nothing.copy()
    # Over this length the outputs did not move at all: a grid as wide as what the slope says they should have moved.
    unmoved = max((3 * h for h, level in levels.items() if level.still), default=0.0)
    finer, squares = np.zeros(base.shape), np.zeros(base.shape)
    for number, h in enumerate(sorted(moving)):
        level = moving[h]
        grid = (unmoved if unmoved < h else 0.0) * np.abs(level.value)
        floor = np.maximum(eps * (size + np.abs(level.value)) / 2, grid)
        finer = np.maximum(finer, floor)
        # What is far above the noise of finer steps is the shape of the function: it bends within this step.
        unresolved = level.noise > _UNLIKE_NOISE * finer if number else np.zeros(base.shape, dtype=bool)
        finer = np.where(unresolved, finer, np.maximum(finer, level.noise))
        squares = squares + np.where(unresolved, finer, level.noise) ** 2
        typical = np.maximum(np.sqrt(squares / (number + 1)), floor)
        total = level.truncation + _SURE * stencil("seven", level.side).noise * finer / h
        better = (total < error) & ~unresolved
        value, error, noise = (
            np.where(better, new, old) for new, old in ((level.value, value), (total, error), (typical, noise))
        )
    sides = [level.side for level in moving.values()]
    return DirectionalSlope(value, error, noise, next((s for s in sides if s), 0), levels)


def error_at(
    slope: DirectionalSlope, method: str, phi: Phi, direction: Array, base: Array
) -> tuple[float, Array, Array]:
    """(step, error, noise of it) of a method along this direction, at the step that suits it best.

    The step is where truncation, as far as it shows at the steps already taken, equals the noise. The error is measured
    there: the distance from the slope of higher order, and that slope's own error.
    """
    with np.errstate(all="ignore"):
        return _error_at(slope, method, phi, direction, base)


def _error_at(
    slope: DirectionalSlope, method: str, phi: Phi, direction: Array, base: Array
) -> tuple[float, Array, Array]:
    formula = stencil(method, slope.side)
    scale = float(np.sqrt(np.mean(slope.noise**2)))
    measured: list[tuple[float, float]] = []  # (step, distance from the slope) where the formula can be read off
    for h, level in sorted(slope.levels.items()):
        if level.side == slope.side and not level.still:
            value = _inner(SEVEN[level.side], level.values, formula.nodes) / h
            measured.append((h, float(np.sqrt(np.mean((value - slope.value) ** 2)))))
    wanted = _balanced(measured, formula, scale)
    step = float(2.0 ** np.round(np.log2(min(max(wanted, 1e-12), 100.0))))
    value = difference(phi, formula.nodes, direction, step, base)
    error = np.abs(value - slope.value) + slope.error
    return step, np.where(np.isfinite(error), error, np.inf), formula.noise * slope.noise / step


def _balanced(measured: Sequence[tuple[float, float]], formula: Stencil, noise: float) -> float:
    """The step where truncation equals noise. Truncation is read where it plainly exceeds noise, at the finest such step."""
    if not measured:
        return 1e-5
    for h, off in measured:
        if off > 2 * _SURE * formula.noise * noise / h:
            return float(
                (formula.noise * noise / (formula.order * off / h**formula.order)) ** (1 / (formula.order + 1))
            )
    return min(measured, key=lambda one: one[1] + formula.noise * noise / one[0])[0]


def difference(phi: Phi, nodes: tuple[int, ...], direction: Array, step: float, base: Array) -> Array:
    """The difference quotient with these nodes."""
    asked = [n for n in nodes if n != 0]
    values = phi([n * step * direction for n in asked])
    if 0 in nodes:
        values = np.insert(values, nodes.index(0), base, axis=0)
    return derivative(nodes, values) / step
