"""How good a gradient is: its error against a derivative of higher order, stated once and kept."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from gradsmith.external import ladder
from gradsmith.external.field import Block, Field, typical_size
from gradsmith.external.gradients import COMPLEX_STEP, Steps, columns_of, evaluations
from gradsmith.external.repeats import precision, rows_apart, state_or_noise, still_the_same
from gradsmith.external.stencil import Array, stencil

GOOD, NOTICEABLE = 1e-3, 1e-2
METHODS = ("central", "forward", "complex-step", "richardson", "spsa", "auto")
_OF_AUTO = ("complex-step", "forward", "central", "richardson")  # in the order of their cost
_DIRECTIONS = 8  # per input; a larger one is measured along random directions in groups of elements of like size
_ALONE = 128  # elements of a large input that are also measured one by one
_SURE = 3.0
# In units in the last place: so far apart that rounding differs in whatever the function computes, and not so far that its
# third derivative shows in their second differences.
_NEIGHBOURS = (0, 1, -1, 7, -7, 37, -37, 211, -211, 1009, -1009, 10007, -10007)
_SAMPLED = (
    2.9  # the mean square of 8 random directions is too small by more than this once in twenty times (chi-square)
)
_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class InputQuality:
    """What is known of the gradient of one input. Error and noise are relative: of the gradient, and of the output."""

    name: str
    error: float
    absolute: float
    noise: float
    smallest_step: float
    largest_step: float
    one_sided: int = 0
    independent: bool = False

    def __str__(self) -> str:
        if self.independent:
            return f"'{self.name}': the outputs do not move with it"
        steps = f"{self.smallest_step:.2g}"
        if self.largest_step > 1.01 * self.smallest_step:
            steps += f" to {self.largest_step:.2g}"
        sides = f", {self.one_sided} of them one-sided" if self.one_sided else ""
        by = f", steps {steps}{sides}" if self.largest_step > 0 else ""
        return f"'{self.name}': error {self.error:.2g} ({self.absolute:.2g} absolute){by}, noise of the function {self.noise:.2g}"


@dataclass(frozen=True)
class Statement:
    """The statement on a gradient: what it is, how far it is off, and what it costs."""

    function: str
    method: str
    inputs: tuple[InputQuality, ...]
    evaluations: int
    measured_with: int
    notes: tuple[str, ...] = ()

    @property
    def error(self) -> float:
        """The largest relative error among the inputs."""
        return max((i.error for i in self.inputs if not i.independent), default=0.0)

    @property
    def grade(self) -> str:
        return "good" if self.error < GOOD else "noticeable" if self.error < NOTICEABLE else "poor"

    def __str__(self) -> str:
        how = {"vjp": "the given vjp", "jacobian": "the given Jacobian", "jvp": "the given jvp"}.get(
            self.method, self.method
        )
        lines = [
            f"{self.function}: gradient by {how}, {self.evaluations} evaluations each; error {self.error:.2g}: {self.grade}.",
            *(f"  {i}" for i in self.inputs),
            *(f"  {note}" for note in self.notes),
            f"  measured with {self.measured_with} evaluations, at these inputs; elsewhere it may differ",
        ]
        return "\n".join(lines)


@dataclass
class Measured:
    """The statement, and the steps of every block that go with it."""

    statement: Statement
    steps: list[Steps] = field(default_factory=list)


@dataclass
class _Group:
    """Columns of one input that are moved together, and what was found along them."""

    position: int
    columns: Array
    direction: Array
    unit: Array  # per row: turns a derivative along the direction into one per element
    slope: ladder.DirectionalSlope | None = None
    step: float = 0.0
    error: Array | None = None
    noise: Array | None = None


def measure(
    of: Field, method: str, samples: int, seed: int, claimed: Sequence[Array] | None = None, enough: float = GOOD / 10
) -> Measured:
    """Measure the gradient that a method gives; "auto" takes the cheapest whose error is below `enough`, else the best.

    `claimed` is a gradient from the user, one matrix per block: then that is what is measured.
    """
    before = of.run.count
    notes = state_or_noise(of)
    rows_apart(of)
    blocks = [(block, _groups(block, seed)) for block in of.blocks]
    for block, groups in blocks:
        found = ladder.slopes(
            block.phi,
            [g.direction for g in groups],
            [float(np.max(g.unit)) for g in groups],
            of.base(block),
            of.size(block),
            reach=[_reach(block, g) for g in groups],
            eps=precision(of, block),
        )
        for group, slope in zip(groups, found):
            group.slope = slope
    if not notes:
        still_the_same(of)
    chosen = method
    if claimed is not None:
        for (_, groups), matrix in zip(blocks, claimed):
            for g in groups:
                _judge_claim(g, matrix)
    elif method == "auto":
        chosen = _choose(of, blocks, samples, enough)
    else:
        _judge(of, blocks, method, samples)
    alone = [{} for _ in blocks] if claimed is not None else [_one_by_one(of, b, g, chosen, seed) for b, g in blocks]
    if notes and claimed is None:  # the next gradient meets other random numbers
        for g in (g for _, groups in blocks for g in groups):
            assert g.error is not None and g.noise is not None
            g.error = np.hypot(g.error, 2 * g.noise)
    columns = sum(block.x.shape[1] for block in of.blocks)
    statement = Statement(
        of.foreign.name,
        chosen,
        tuple(
            _input(of, block, groups, k, one.get(k, 0.0))
            for (block, groups), one in zip(blocks, alone)
            for k in range(len(block.positions))
        ),
        (1 if method in ("vjp", "jacobian") else columns if method == "jvp" else evaluations(chosen, columns, samples))
        * (of.rows if of.layout.by_row else 1),
        of.run.count - before,
        tuple(notes),
    )
    order = sorted(statement.inputs, key=lambda i: of.call.names.index(i.name))
    return Measured(replace(statement, inputs=tuple(order)), [_steps(block, groups) for block, groups in blocks])


def _choose(of: Field, blocks: list[tuple[Block, list[_Group]]], samples: int, enough: float) -> str:
    """The cheapest method that is good enough, else the best; the groups keep what was found for it."""
    tried: list[tuple[float, int, str]] = []
    for number, method in enumerate(_OF_AUTO):
        _judge(of, blocks, method, samples)
        error = max(_input(of, b, g, k).error for b, g in blocks for k in range(len(b.positions)))
        if error <= enough:
            return method
        tried.append((error, number, method))
    _, _, method = min(tried)
    _judge(of, blocks, method, samples)
    return method


def _judge(of: Field, blocks: list[tuple[Block, list[_Group]]], method: str, samples: int) -> None:
    for block, groups in blocks:
        base = of.base(block)
        for g in groups:
            assert g.slope is not None
            if method == "complex-step":
                g.step = COMPLEX_STEP
                g.error, g.noise = _complex_error(block, g, base)
                continue
            formula = "central" if method == "spsa" else method
            g.step, g.error, g.noise = ladder.error_at(g.slope, formula, block.phi, g.direction, base)
        if method == "spsa":
            _spread_of_signs(block, groups, samples)


def _complex_error(block: Block, g: _Group, base: Array) -> tuple[Array, Array]:
    """How far the complex step is off: where it agrees with differences, as much as it moves between neighbours of x."""
    assert g.slope is not None
    none = np.full(base.shape, np.inf), np.zeros(base.shape)
    neighbours = [k * _EPS * g.direction for k in _NEIGHBOURS]
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", np.exceptions.ComplexWarning)  # a cast to real shows in the value, too
        values = block.phi([n + 1j * COMPLEX_STEP * g.direction for n in neighbours])
    if not np.iscomplexobj(values) or not np.isfinite(values).all():
        return none
    found = values.imag / COMPLEX_STEP
    off = np.abs(found[0] - g.slope.value)
    # Neighbours differ by the slope of the slope, too; second differences do not see that.
    bends = [found[k] - 2 * found[0] + found[k + 1] for k in range(1, len(_NEIGHBOURS), 2)]
    spread = np.abs(bends).max(axis=0) / np.sqrt(6)
    own = _SURE * spread + 4 * _EPS * np.abs(found[0])
    agrees = off <= _SURE * (g.slope.error + own)
    return np.where(agrees, own, off + g.slope.error), spread


def _spread_of_signs(block: Block, groups: list[_Group], samples: int) -> None:
    """Of n elements, k random directions leave a share of sqrt((n - 1) / k) of the gradient unseen."""
    columns = block.x.shape[1]
    for g in groups:
        assert g.slope is not None and g.error is not None
        g.error = g.error + np.abs(g.slope.value) * np.sqrt((columns - 1) / samples)


def _judge_claim(g: _Group, claimed: Array) -> None:
    assert g.slope is not None
    said = (claimed * g.direction).sum(axis=1)
    g.step, g.error, g.noise = 0.0, np.abs(said - g.slope.value) + g.slope.error, np.zeros_like(said)


def _reach(block: Block, g: _Group) -> int:
    """How far the steps of these elements may be lengthened: to the typical size of their input, in powers of two."""
    begin, end = block.spans[g.position]
    typical = typical_size(block.x[:, begin:end])
    own = float(np.max(np.abs(g.direction)))
    # Beyond 2^60 nothing in common is left, and the steps would take as many evaluations.
    return min(max(0, int(np.ceil(np.log2(typical) - np.log2(own)))), 60) if typical > 0 else 0


def _groups(block: Block, seed: int) -> list[_Group]:
    """The columns of every input, each on its own where they are few, else by size with random signs."""
    rng = np.random.default_rng(seed)
    scale = block.scale()
    found = []
    for number, (begin, end) in enumerate(block.spans):
        columns = np.arange(begin, end)
        columns = columns[np.argsort(np.median(scale[:, columns], axis=0), kind="stable")]
        for part in np.array_split(columns, min(len(columns), _DIRECTIONS)):
            direction = np.zeros_like(block.x)
            direction[:, part] = scale[:, part] * (1.0 if len(part) == 1 else rng.choice([-1.0, 1.0], size=len(part)))
            unit = np.array([1 / typical_size(row) for row in scale[:, part]])
            found.append(_Group(number, part, direction, unit))
    return found


def _one_by_one(of: Field, block: Block, groups: list[_Group], method: str, seed: int) -> dict[int, float]:
    """Of every input that was measured in groups: the square of its error, from single elements at one step and at twice.

    Along a random direction the errors of its elements may cancel; one by one they cannot.
    """
    found: dict[int, float] = {}
    if method in ("complex-step", "spsa"):
        return found
    steps, rng = _steps(block, groups), np.random.default_rng(seed)
    for k, (begin, end) in enumerate(block.spans):
        if end - begin <= _DIRECTIONS:
            continue
        columns = np.sort(rng.permutation(np.arange(begin, end))[:_ALONE]).tolist()
        order = stencil(method).order
        at = [columns_of(of, block, method, columns, replace(steps, step=f * steps.step)) for f in (1.0, 2.0)]
        off = (at[1] - at[0]) / (2**order - 1)
        found[k] = float(np.nansum(off**2)) * (end - begin) / len(columns)
    return found


def _input(of: Field, block: Block, groups: list[_Group], k: int, alone: float = 0.0) -> InputQuality:
    mine = [g for g in groups if g.position == k]
    size = of.size(block)
    error = gradient = noise = moved = 0.0
    for g in mine:
        assert g.slope is not None and g.error is not None and g.noise is not None
        sampled = _SAMPLED if len(g.columns) > 1 else 1.0
        error += sampled * float(np.sum((g.unit * g.error) ** 2))
        if len(g.columns) > 1:  # moved alone, each element meets the noise anew, divided by its own, perhaps short step
            each = (g.noise[:, None] / block.scale()[:, g.columns]) ** 2
            # The sum of squares of normal numbers, and three of its standard deviations: one short step may be most of it.
            error += float(np.sum(each)) + _SURE * float(np.sqrt(2 * np.sum(each**2)))
        gradient += float(np.sum((g.unit * np.nan_to_num(g.slope.value)) ** 2))
        # Of the outputs, or, where they are 0, of what a step as long as the input makes of them.
        whole = np.maximum(size, np.abs(g.slope.value) + np.where(np.isfinite(g.error), g.error, 0.0))
        noise = max(noise, float(np.max(np.divide(g.slope.noise, whole, out=np.zeros_like(whole), where=whole > 0))))
        moved = max(moved, float(np.max((np.abs(g.slope.value) + g.error) / np.maximum(size, 1e-300))))
    error = max(error, _SAMPLED * alone)
    name = of.call.names[block.positions[k]]
    scale = block.scale()
    steps = [g.step * scale[:, g.columns] for g in mine]
    sides = sum(len(g.columns) * block.x.shape[0] for g in mine if g.slope is not None and g.slope.side)
    # Neither the slope nor its error is visible in the outputs: nothing to be wrong about.
    independent = moved <= np.sqrt(_EPS) and error >= GOOD**2 * gradient
    absolute = float(np.sqrt(error))
    relative = absolute / float(np.sqrt(gradient)) if gradient > 0 else (0.0 if error == 0 else np.inf)
    smallest, largest = min(float(s.min()) for s in steps), max(float(s.max()) for s in steps)
    return InputQuality(name, float(relative), absolute, noise, smallest, largest, sides, independent)


def _steps(block: Block, groups: list[_Group]) -> Steps:
    step, side = np.zeros(block.x.shape[1]), np.zeros(block.x.shape[1])
    for g in groups:
        step[g.columns] = g.step
        side[g.columns] = g.slope.side if g.slope is not None else 0
    return Steps(step, side)
