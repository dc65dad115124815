"""Memory for buffers that are asked for again at every call: without this, clearing fresh pages takes longer than using them.

glibc maps large blocks anew at every call and returns them when they are freed, and the kernel clears every page once
more: 1.2 ms per 4 MB here, a third of a training step of a spiking cell (batch 32, 128 units, 256 steps).
"""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

_LARGEST = (32 << 20) - (64 << 10)  # what glibc can be made to keep, less the header of a block and its alignment
_HUGE_PAGE = 2 << 20
_MADV_HUGEPAGE = 14


@functools.cache
def reuse_freed_pages() -> None:
    """Make glibc keep what it gets back, once per process; other allocators have no such limits.

    Its limits grow with the largest mapped block that was ever freed, up to 32 MB (mallopt(3), M_MMAP_THRESHOLD): from then
    on blocks up to that size come from the heap, of which up to 64 MB stay. One untouched block, freed at once, is enough.
    """
    torch.empty(_LARGEST, dtype=torch.uint8)


def room(shape: Sequence[int], dtype: torch.dtype) -> Tensor:
    """`torch.empty` on the CPU. What is too large for glibc to keep comes in pages of 2 MB: 3 ms per 64 MB instead of 19."""
    made = torch.empty(tuple(shape), dtype=dtype)
    # A fake tensor has no memory, and its size may be a symbol.
    if type(made) is Tensor and made.nbytes > _LARGEST and (advise := _madvise()) is not None:
        start = -(-made.data_ptr() // _HUGE_PAGE) * _HUGE_PAGE
        advise(start, (made.data_ptr() + made.nbytes - start) // _HUGE_PAGE * _HUGE_PAGE, _MADV_HUGEPAGE)
    return made


@functools.cache
def _madvise() -> Callable[[int, int, int], int] | None:
    if not sys.platform.startswith("linux"):
        return None
    function = ctypes.CDLL(None).madvise
    function.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    function.restype = ctypes.c_int
    found: Callable[[int, int, int], int] = function
    return found
