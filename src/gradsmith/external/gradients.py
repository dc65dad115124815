"""The gradient of phi, element by element, by the method that was chosen; and by random directions at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gradsmith.external.errors import ExternalError
from gradsmith.external.field import Block, Field
from gradsmith.external.stencil import Array, derivative, stencil

COMPLEX_STEP = 2.0**-66  # of the element: its square is lost beside 1, and nothing is subtracted
_AT_ONCE = 64


@dataclass(frozen=True)
class Steps:
    """For every column of a block: the step in units of its elements, and the side on which it may be taken."""

    step: Array
    side: Array


def evaluations(method: str, columns: int, samples: int) -> int:
    """How often the function runs for one gradient with so many columns, besides the point itself."""
    if method == "spsa":
        return 2 * samples
    if method == "complex-step":
        return columns
    return len(stencil(method).moved()) * columns


def gradient(field: Field, block: Block, method: str, steps: Steps, samples: int, seed: int) -> Array:
    """The gradient as a matrix like block.x."""
    if method == "complex-step":
        return by_complex_step(block)
    if method == "spsa":
        return _by_spsa(block, steps, samples, seed)
    return _by_differences(field, block, method, steps)


def _unit(block: Block, column: int) -> Array:
    unit = np.zeros_like(block.x)
    unit[:, column] = block.scale()[:, column]
    return unit


def by_complex_step(block: Block) -> Array:
    found = np.empty_like(block.x)
    scale = block.scale()
    for begin in range(0, block.x.shape[1], _AT_ONCE):
        columns = range(begin, min(begin + _AT_ONCE, block.x.shape[1]))
        values = block.phi([1j * COMPLEX_STEP * _unit(block, c) for c in columns])
        for c, value in zip(columns, values):
            found[:, c] = value.imag / COMPLEX_STEP / scale[:, c]
    return found


def _by_spsa(block: Block, steps: Steps, samples: int, seed: int) -> Array:
    """The mean over random signs: unbiased, and as noisy as there are elements for each sample."""
    rng = np.random.default_rng(seed)
    scale = block.scale() * steps.step
    signs = [rng.choice([-1.0, 1.0], size=block.x.shape) for _ in range(samples)]
    values = block.phi([way * s * scale for s in signs for way in (1, -1)])
    found = np.zeros_like(block.x)
    for k, s in enumerate(signs):
        slope = (values[2 * k] - values[2 * k + 1]) / 2
        found += slope[:, None] * s / scale
    return found / samples


def _by_differences(field: Field, block: Block, method: str, steps: Steps) -> Array:
    scale, base = block.scale(), field.base(block)
    found = np.full(block.x.shape, np.nan)
    for column in range(0, block.x.shape[1], _AT_ONCE):
        asked = list(range(column, min(column + _AT_ONCE, block.x.shape[1])))
        # What the first formula cannot do, because it leaves the domain, the others try, each on its own side.
        for turn in (0, 1, 2):
            left = [c for c in asked if not np.isfinite(found[:, c]).all()]
            if not left:
                break
            sides = [_side(int(steps.side[c]), turn) for c in left]
            for c, slope in zip(left, _slopes(block, method, left, sides, steps, base)):
                missing = ~np.isfinite(found[:, c])
                found[missing, c] = (slope / scale[:, c])[missing]
    if not np.isfinite(found).all():
        raise _nowhere(field, block, steps, found)
    return found


def columns_of(field: Field, block: Block, method: str, columns: Sequence[int], steps: Steps) -> Array:
    """The gradient of these columns alone; NaN where a step leaves the domain."""
    sides = [int(steps.side[c]) for c in columns]
    slopes = _slopes(block, method, columns, sides, steps, field.base(block))
    return np.array(slopes).T / block.scale()[:, columns]


def _side(first: int, turn: int) -> int:
    order = (first, *(s for s in (0, 1, -1) if s != first))
    return order[turn]


def _slopes(
    block: Block, method: str, columns: Sequence[int], sides: Sequence[int], steps: Steps, base: Array
) -> list[Array]:
    formulas = [stencil(method, side) for side in sides]
    moves = [n * steps.step[c] * _unit(block, c) for c, f in zip(columns, formulas) for n in f.moved()]
    values = iter(block.phi(moves))
    found = []
    for c, formula in zip(columns, formulas):
        at = {n: next(values) for n in formula.moved()}
        rows = np.array([at.get(n, base) for n in formula.nodes])
        found.append(derivative(formula.nodes, rows) / steps.step[c])
    return found


def _nowhere(field: Field, block: Block, steps: Steps, found: Array) -> ExternalError:
    row, column = (int(i) for i in np.argwhere(~np.isfinite(found))[0])
    k, (begin, _) = next((k, s) for k, s in zip(block.positions, block.spans) if s[0] <= column < s[1])
    flat = (row if block.rows else 0) * (field.arrays[k].size // block.x.shape[0]) + column - begin
    place = [int(i) for i in np.unravel_index(flat, field.arrays[k].shape)]
    step = float(steps.step[column] * block.scale()[row, column])
    why = f"it raises {field.failure}" if field.failure else "it returns NaN"
    return ExternalError(
        f"{field.foreign.name} has no value on either side of '{field.call.names[k]}'{place or ''} = {block.x[row, column]:g} (step "
        f"{step:.1g}): {why}. Its domain is a single point there; give vjp= or jacobian=."
    )
