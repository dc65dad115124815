"""The memory of one launch: every storage with a guard zone on both sides, and who touched which element last."""

from __future__ import annotations

import ctypes
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import torch

Numbers = np.ndarray[Any, Any]
GUARD = 1 << 12  # bytes on each side
_ALIGNED = 64
_NOBODY = -1
_RUNS = 64


@dataclass
class Region:
    """One storage that was passed to a launch."""

    low: int
    high: int
    name: str  # the pointer argument
    shape: tuple[int, ...]
    whole: bool  # the tensor is contiguous and all of its storage; the tensor itself is not held, nor its graph
    item: int
    raw: Numbers
    source: int  # the address of the user's own storage
    keeps: Any = field(repr=False, default=None)
    writer: Numbers | None = None
    reader: Numbers | None = None
    several: Numbers | None = None  # read by more than one program
    atomic: Numbers | None = None

    @property
    def elements(self) -> int:
        return (self.high - self.low) // self.item

    def shadow(self) -> None:
        if self.writer is None:
            many = self.elements + 1
            self.writer, self.reader, self.atomic = (np.full(many, _NOBODY, np.int32) for _ in range(3))
            self.several = np.zeros(many, bool)

    def ends_unset(self) -> bool:
        """Whether the last element is NaN: memory that nobody has written is filled with it while kernels are watched."""
        kind = {2: np.float16, 4: np.float32, 8: np.float64}.get(self.item)
        last = (
            self.raw[self.elements * self.item - self.item : self.elements * self.item] if self.elements else self.raw
        )
        return kind is not None and len(last) == self.item and bool(np.isnan(last.view(kind)[0]))

    def element(self, index: int) -> str:
        """How a user calls an element: by its indices where the tensor is the whole of its storage."""
        if self.whole and len(self.shape) > 1 and 0 <= index < int(np.prod(self.shape)):
            return str([int(i) for i in np.unravel_index(index, self.shape)])
        return f"[{index}]"


@dataclass
class LaneGroup:
    """Lanes of one access that belong to one region: their numbers, byte offsets, and which of them lie inside."""

    region: Region
    lanes: Numbers
    offsets: Numbers
    inside: Numbers
    whole: bool  # all of them lie inside

    @cached_property
    def indices(self) -> Numbers:
        return (self.offsets if self.whole else self.offsets[self.inside]) // self.region.item


@dataclass
class RunningKernel:
    """A kernel that is running."""

    kernel: str
    regions: list[Region] = field(default_factory=list)
    waited: int | None = (
        None  # the program that used a lock or a flag last: from there on, its order is its own business
    )
    alone: bool = False  # there is one program only, which nothing can race with
    starts: list[int] = field(default_factory=list)  # of the regions with their zones, in order
    lows: Numbers = field(default_factory=lambda: np.zeros(0, np.uint64))

    def orders(self, program: int) -> bool:
        """Whether this program has taken a lock, or looked at a flag, before what it does now."""
        return self.waited == program

    def close(self) -> None:
        self.regions.sort(key=lambda r: r.low)
        self.starts = [r.low - GUARD for r in self.regions]
        self.lows = np.array(self.starts, np.uint64)

    def parts(self, pointers: Numbers, mask: Numbers, item: int) -> Iterator[LaneGroup]:
        """The lanes that are not masked off, by the region whose pointer they were made from, or the nearest below."""
        lanes = np.nonzero(mask)[0]
        if not len(lanes) or not self.regions:
            return
        addresses = pointers[lanes] if len(lanes) < len(pointers) else pointers
        first, last = int(addresses.min()), int(addresses.max())
        number = max(bisect_right(self.starts, first) - 1, 0)
        if number + 1 == len(self.starts) or last < self.starts[number + 1]:  # nearly always: one access, one tensor
            yield _part(self.regions[number], lanes, addresses, item)
            return
        which = np.searchsorted(self.lows, addresses, side="right") - 1
        for number in np.unique(which):
            mine = which == number
            yield _part(self.regions[max(int(number), 0)], lanes[mine], addresses[mine], item)


def _part(region: Region, lanes: Numbers, addresses: Numbers, item: int) -> LaneGroup:
    offsets = addresses.astype(np.int64) - region.low
    inside = (offsets >= 0) & (offsets + item <= region.high - region.low)
    return LaneGroup(region, lanes, offsets, inside, bool(inside.all()))


def runs(elements: Numbers) -> tuple[tuple[int, int], ...]:
    """First and last of each run of elements; at most 64 from either end, for those who draw them.

    >>> runs(np.array([7, 3, 4, 5, 3]))
    ((3, 5), (7, 7))
    """
    ordered = np.unique(elements)
    ends = np.nonzero(np.diff(ordered) > 1)[0]
    firsts, lasts = ordered[[0, *(ends + 1)]], ordered[[*ends, -1]]
    found = [(int(a), int(b)) for a, b in zip(firsts, lasts)]
    return tuple(found if len(found) <= 2 * _RUNS else found[:_RUNS] + found[-_RUNS:])


def guarded(tensor: torch.Tensor, name: str) -> tuple[Region, Any]:
    """A copy of the tensor's storage between guard zones, and the storage to use in its place."""
    storage = tensor.untyped_storage()
    count, address = storage.nbytes(), storage.data_ptr()
    whole = np.full(count + 2 * GUARD + _ALIGNED, 0xFF, np.uint8)  # NaN in every floating-point type
    start = GUARD + (-whole.ctypes.data - GUARD) % _ALIGNED
    inner = whole[start : start + count]
    if count:
        inner[:] = np.frombuffer(memoryview((ctypes.c_char * count).from_address(address)), np.uint8)
    low = whole.ctypes.data + start
    new = torch.from_numpy(inner).untyped_storage() if count else storage
    plain = tensor.is_contiguous() and tensor.storage_offset() == 0
    shape = tuple(tensor.shape)
    return Region(low, low + count, name, shape, plain, tensor.element_size(), inner, address, whole), new
