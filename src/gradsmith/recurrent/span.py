"""Which rows run at which time step: all of them, or, the longest sequence first, those whose sequence has not ended.

The rows of one step lie together, those of the next step behind them, in x, y and all that is kept for backward. `first` has
the row at which each step begins. A state has the rows of the initial state in front of those that each step leaves. So what a
sequence does not have takes no memory and no time. Where all sequences have all steps, shapes are (time, batch, ...).
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from gradsmith.native.threads import shares


@dataclass(frozen=True, eq=False)
class Span:
    """The time steps of one call, and the rows of each."""

    steps: int
    batch: int
    uneven: Tensor | None = None
    """`first` where sequences have different lengths: whole numbers on the CPU, one more than steps."""

    @classmethod
    def of(cls, x: Sequence[Tensor], state: Sequence[Tensor], uneven: Tensor | None) -> Span:
        if uneven is None:
            return cls(x[0].shape[0], x[0].shape[1])
        return cls(uneven.shape[0] - 1, state[0].shape[0], uneven)

    @functools.cached_property
    def first(self) -> Tensor:
        return _even(self.steps, self.batch) if self.uneven is None else self.uneven

    @functools.cached_property
    def rows(self) -> int:
        return self.steps * self.batch if self.uneven is None else int(self.uneven[-1])

    @property
    def lead(self) -> tuple[int, ...]:
        """The first dimensions of what has a place for every step."""
        return (self.steps, self.batch) if self.uneven is None else (self.rows,)

    def lead_of_states(self, whole: bool) -> tuple[int, ...]:
        """Those of a state: with all steps, or with two that take turns."""
        if self.uneven is None:
            return (self.steps + 1 if whole else 2, self.batch)
        return (self.batch + self.rows if whole else 2 * self.batch,)

    def is_whole(self, states: Tensor) -> bool:
        return states.shape[0] == self.lead_of_states(True)[0]

    def flat(self, course: Tensor) -> Tensor:
        """The rows of all steps, one after another."""
        return course.flatten(0, 1) if self.uneven is None else course

    def put_first(self, states: Tensor, state: Tensor) -> None:
        states[0 if self.uneven is None else slice(self.batch)] = state

    def before(self, states: Tensor) -> Tensor:
        """The state that each step starts from; where sequences end between two steps, their rows are left out."""
        return states[: self.steps] if self.uneven is None else states.index_select(0, self._rows_before)

    def after(self, states: Tensor) -> Tensor:
        """The state that each step leaves."""
        return states[1:] if self.uneven is None else states[self.batch :]

    def last(self, states: Tensor) -> Tensor:
        """The state that each sequence ends with."""
        whole = self.is_whole(states)
        if self.uneven is None:
            return states[self.steps if whole else self.steps & 1]
        row = torch.arange(self.batch, device="cpu")
        at = (self.lengths & 1) * self.batch
        if whole:  # a sequence that ended before these steps has its state still in front
            at = torch.where(self.lengths > 0, self.batch + self.first[(self.lengths - 1).clamp(min=0)], 0)
        return states.index_select(0, at + row)

    @functools.cached_property
    def lengths(self) -> Tensor:
        """How many steps each row has."""
        return (self.first.diff()[:, None] > torch.arange(self.batch, device="cpu")).sum(0)

    @functools.cached_property
    def _rows_before(self) -> Tensor:
        sizes = self.first.diff()
        earlier = torch.cat([sizes.new_full((1,), self.batch), sizes[:-1]])
        return torch.arange(self.rows, device="cpu") + torch.repeat_interleave(
            self.batch - earlier, sizes, output_size=self.rows
        )

    def shares(self, work_per_row: int, worth: int) -> list[tuple[int, int]]:
        """Rows for each thread, so that all have as many steps to do."""
        even = shares(self.batch, self.rows * work_per_row, worth)
        if self.uneven is None or len(even) == 1:
            return even
        done = self.lengths.cumsum(0)
        wanted = torch.arange(1, len(even), device="cpu") * self.rows // len(even)
        cuts = sorted({0, self.batch, *(torch.searchsorted(done, wanted) + 1).tolist()})
        return list(itertools.pairwise(cuts))


@functools.lru_cache(maxsize=64)
def _even(steps: int, batch: int) -> Tensor:
    return torch.arange(steps + 1, device="cpu") * batch
