"""phi(x) = <v, fn(x)> as a function of displacements: what differences are taken of.

Inputs are laid side by side as a matrix. Where rows are independent (`batched`), it has one row per sample, and all rows are
moved at once; else it has one row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from gradsmith.external.calls import CallSignature
from gradsmith.external.errors import ExternalError
from gradsmith.external.evaluating import Evaluator
from gradsmith.external.foreign import AnyArray, Failure, Foreign, copies, undefined_outputs
from gradsmith.external.stencil import Array

_AT_ONCE = 256  # points held in memory at a time


@dataclass(frozen=True)
class RowLayout:
    """Which inputs have rows of their own, and whether the function takes one row or all of them."""

    batched: bool = False
    by_row: bool = False
    shared: tuple[str, ...] = ()

    def has_rows(self, name: str) -> bool:
        return (self.batched or self.by_row) and name.split("[")[0] not in self.shared


@dataclass(frozen=True)
class Block:
    """Inputs that are moved together: of each, where its columns begin and end."""

    positions: tuple[int, ...]
    x: Array
    rows: bool
    spans: tuple[tuple[int, int], ...]
    phi: Callable[[Sequence[Array]], Array] = field(repr=False)

    def scale(self) -> Array:
        """The unit of a step for every element: the power of two nearest to its size, so that x + h is exact.

        An element that is 0 says nothing of its size; it gets that of the others of its input, else 1.
        """
        found = np.abs(self.x)
        for begin, end in self.spans:
            part = found[:, begin:end]
            part[part == 0] = typical_size(part[part > 0]) or 1.0
        return np.exp2(np.clip(np.round(np.log2(found)), -900, 900))  # beyond, x + h or 1 / h is no number any more


def typical_size(values: Array) -> float:
    """The root of the mean square, of numbers whose squares need not be numbers; 0 where there are none.

    >>> round(typical_size(np.array([3e200, 4e200])) / 1e200, 6)
    3.535534
    """
    largest = float(np.abs(values).max(initial=0.0))
    return largest * float(np.sqrt(np.mean(np.square(values / largest)))) if largest > 0 else 0.0


class Field:
    """One call of a foreign function, its inputs, and the weights v of its outputs."""

    def __init__(
        self,
        foreign: Foreign,
        call: CallSignature,
        arrays: Sequence[AnyArray],
        wanted: Sequence[int],
        run: Evaluator,
        layout: RowLayout,
    ) -> None:
        self.foreign, self.call, self.arrays, self.run, self.layout = foreign, call, list(arrays), run, layout
        self.wanted = tuple(wanted)
        self.rows = rows_of(foreign.name, call, arrays, layout)
        self.failure = ""
        self.v: list[AnyArray | None] = []
        outputs = self.outputs_at([self.arrays])[0]
        if isinstance(outputs, Failure):
            raise ExternalError(f"{foreign.name} raised at the inputs of the forward call: {outputs.text}")
        self.outputs = outputs
        for k in self.wanted:
            if not np.isfinite(self.arrays[k]).all():
                place = [int(i) for i in np.argwhere(~np.isfinite(self.arrays[k]))[0]]
                raise ExternalError(
                    f"'{call.names[k]}'{place or ''} is NaN or infinite, so there is no step from it and no derivative. Replace such elements "
                    f"before the call of {foreign.name}."
                )
        self.blocks = self._blocks()

    def weigh(self, v: Sequence[AnyArray | None]) -> None:
        """Set the weights of the outputs. NaN in an output that has weight leaves no derivative."""
        self.v = list(v)
        if problem := undefined_outputs(self.foreign.name, self.outputs, self.v):
            raise ExternalError(problem)

    def base(self, block: Block) -> Array:
        return np.asarray(self._phi(self.outputs, block.rows))

    def size(self, block: Block) -> Array:
        """The size of the terms in phi: rounding goes with it, however much they cancel."""
        squares = [np.square(np.abs(np.where(w == 0, 0, out * w))) for out, w in self._weighted(self.outputs)]
        return np.sqrt(sum((self._summed(s, block.rows) for s in squares), np.zeros(self._shape(block.rows))))

    def outputs_at(self, points: Sequence[Sequence[AnyArray]]) -> list[list[AnyArray] | Failure]:
        """The outputs at each point; a Failure where the function raised."""
        tasks = [task for point in points for task in self._tasks(point)]
        answers = self.run(tasks)
        per_point = len(tasks) // max(len(points), 1)
        found: list[list[AnyArray] | Failure] = []
        for k, point in enumerate(points):
            mine = answers[k * per_point : (k + 1) * per_point]
            failed = next((a for a in mine if isinstance(a, Failure)), None)
            if failed is not None:
                self.failure = failed.text
                found.append(failed)
                continue
            values = [a.value for a in mine if not isinstance(a, Failure)]
            for a in mine:
                self.foreign.printed("" if isinstance(a, Failure) else a.printed)
            found.append(self._read(point, values))
        return found

    def _read(self, point: Sequence[AnyArray], values: list[Any]) -> list[AnyArray]:
        if not self.layout.by_row:
            return self.foreign.read(self.call, point, values[0])
        row = self._row(point, 0)
        each = [self.foreign.read(self.call, row, value) for value in values]
        return [np.stack(parts) for parts in zip(*each)]

    def _tasks(self, point: Sequence[AnyArray]) -> Iterator[Any]:
        if not self.layout.by_row:
            yield self.call.arguments(copies(point))
            return
        for b in range(self.rows):
            yield self.call.arguments(copies(self._row(point, b)))

    def _row(self, point: Sequence[AnyArray], b: int) -> list[AnyArray]:
        return [a[b] if self.layout.has_rows(n) else a for a, n in zip(point, self.call.names)]

    def _blocks(self) -> list[Block]:
        found = []
        for rows in (True, False):
            mine = tuple(k for k in self.wanted if self.layout.has_rows(self.call.names[k]) is rows)
            if not mine:
                continue
            parts = [self.arrays[k].astype(np.float64).reshape(self.rows if rows else 1, -1) for k in mine]
            ends = np.cumsum([p.shape[1] for p in parts])
            spans = tuple((int(e - p.shape[1]), int(e)) for e, p in zip(ends, parts))
            x = np.concatenate(parts, axis=1)
            found.append(Block(mine, x, rows, spans, partial(self._values, mine, spans, x, rows)))
        return found

    def _values(
        self,
        positions: tuple[int, ...],
        spans: tuple[tuple[int, int], ...],
        x: Array,
        rows: bool,
        moves: Sequence[Array],
    ) -> Array:
        """phi at every move; NaN where the function raised or returned no number."""
        found = []
        for begin in range(0, len(moves), _AT_ONCE):
            points = []
            for move in moves[begin : begin + _AT_ONCE]:
                moved = x + move
                point = list(self.arrays)
                for k, (first, end) in zip(positions, spans):
                    kind = np.complex128 if np.iscomplexobj(moved) else self.arrays[k].dtype
                    point[k] = moved[:, first:end].reshape(self.arrays[k].shape).astype(kind)
                points.append(point)
            for outputs in self.outputs_at(points):
                failed = isinstance(outputs, Failure)
                found.append(np.full(self._shape(rows), np.nan) if failed else self._phi(outputs, rows))  # type: ignore[arg-type]
        return np.array(found)

    def _phi(self, outputs: Sequence[AnyArray], rows: bool) -> Any:
        total: Any = np.zeros(self._shape(rows))
        for out, w in self._weighted(outputs):
            product = np.where(w == 0, 0, out * np.conj(w))
            total = total + self._summed(product.real if np.iscomplexobj(w) else product, rows)
        return total

    def _weighted(self, outputs: Sequence[AnyArray]) -> Iterator[tuple[AnyArray, AnyArray]]:
        return ((out, w) for out, w in zip(outputs, self.v) if w is not None)

    def _summed(self, values: AnyArray, rows: bool) -> Any:
        return values.reshape(self.rows, -1).sum(axis=1) if rows else values.sum().reshape(1)

    def _shape(self, rows: bool) -> tuple[int]:
        return (self.rows if rows else 1,)


def rows_of(name: str, call: CallSignature, arrays: Sequence[AnyArray], layout: RowLayout) -> int:
    """The number of rows that the inputs have in common."""
    if not (layout.batched or layout.by_row):
        return 1
    found = {n: a.shape[0] if a.ndim else -1 for n, a in zip(call.names, arrays) if layout.has_rows(n)}
    if not found or min(found.values()) < 0 or len(set(found.values())) > 1:
        sizes = ", ".join(f"'{n}' has {s if s >= 0 else 'no'} rows" for n, s in found.items()) or "no input has rows"
        raise ExternalError(
            f"{name} is wrapped with batched=..., and its inputs have no common number of rows: {sizes}. Name inputs that all rows "
            "share: shared=('theta',)."
        )
    rows = next(iter(found.values()))
    if layout.by_row and rows == 0:
        raise ExternalError(
            f"{name} is wrapped with batched='rows' and got no rows, so the shape of its outputs is not known."
        )
    return rows
