"""Sequences of different lengths, without their padding: the rows of each time step together, the longest sequence first.

This is the order of `torch.nn.utils.rnn.PackedSequence`, and what the compiled loops run on (see span.py). A layer on top
of another takes its rows as they are; padding comes back only where the caller gave it.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence
from torch.utils import _pytree as pytree

from .span import Span


@dataclass(frozen=True, eq=False)
class Packing:
    """Where the rows of a batch are. The numbers are on the CPU, whatever device the rows are on."""

    first: Tensor
    order: Tensor | None
    """The caller's number of each sequence, longest first; None if that is the caller's own order."""

    @classmethod
    def of_lengths(cls, lengths: Tensor) -> Packing:
        lengths, order = lengths.cpu().sort(descending=True, stable=True)
        times = torch.arange(int(lengths[0]), device="cpu")
        ended = torch.searchsorted(lengths.flip(0), times, right=True)
        return cls(_starts(lengths.shape[0] - ended), order)

    @classmethod
    def of_packed(cls, packed: PackedSequence) -> Packing:
        order = packed.sorted_indices
        return cls(_starts(packed.batch_sizes), None if order is None else order.cpu())

    @functools.cached_property
    def span(self) -> Span:
        return Span(self.first.shape[0] - 1, int(self.first[1]), self.first)

    @functools.cached_property
    def lengths(self) -> Tensor:
        """How many steps each of the caller's sequences has."""
        found: Tensor = self.unsorted(self.span.lengths)
        return found

    def rows_of(self, padded: Any) -> Any:
        """The rows of tensors of shape (time, batch, ...), without what is behind the end of a sequence."""
        return pytree.tree_map(lambda leaf: leaf.flatten(0, 1).index_select(0, self._at(leaf)), padded)

    def padded(self, rows: Any, steps: int) -> Any:
        """The rows as (time, batch, ...), with zeros behind the end of a sequence."""

        def one(leaf: Tensor) -> Tensor:
            whole = leaf.new_zeros(steps * self.span.batch, *leaf.shape[1:]).index_add(0, self._at(leaf), leaf)
            return whole.reshape(steps, self.span.batch, *leaf.shape[1:])

        return pytree.tree_map(one, rows)

    def backwards(self, rows: Any) -> Any:
        """Every sequence from its own end to its beginning; twice is nothing."""
        return pytree.tree_map(lambda leaf: leaf.index_select(0, self._mirrored.to(leaf.device)), rows)

    def sorted(self, state: Any) -> Any:
        if self.order is None:
            return state
        order = self.order
        return pytree.tree_map(lambda leaf: leaf.index_select(0, order.to(leaf.device)), state)

    def unsorted(self, state: Any) -> Any:
        if self.order is None:
            return state
        back = torch.argsort(self.order)
        return pytree.tree_map(lambda leaf: leaf.index_select(0, back.to(leaf.device)), state)

    def _at(self, leaf: Tensor) -> Tensor:
        return self._in_padded.to(leaf.device)

    @functools.cached_property
    def _times(self) -> Tensor:
        """The time step of every row."""
        times = torch.arange(self.span.steps, device="cpu")
        return torch.repeat_interleave(times, self.first.diff(), output_size=self.span.rows)

    @functools.cached_property
    def _sequences(self) -> Tensor:
        """The sequence of every row, by its place among the sorted ones."""
        return torch.arange(self.span.rows, device="cpu") - self.first[self._times]

    @functools.cached_property
    def _in_padded(self) -> Tensor:
        number = self._sequences if self.order is None else self.order[self._sequences]
        return self._times * self.span.batch + number

    @functools.cached_property
    def _mirrored(self) -> Tensor:
        return self.first[self.span.lengths[self._sequences] - 1 - self._times] + self._sequences


def _starts(sizes: Tensor) -> Tensor:
    return torch.cat([sizes.new_zeros(1), sizes.cumsum(0)])
