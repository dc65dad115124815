"""Rows of a batch never meet, so every thread takes its rows through the whole of time without waiting for the others."""

from __future__ import annotations

import ctypes
import functools
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import torch

_WORTH_A_THREAD = 1 << 17  # elements per call; below, waking a thread (50 microseconds) costs more than it saves


@functools.cache
def _libtorch() -> ctypes.CDLL | None:
    path = Path(torch.__file__).parent / "lib" / "libtorch_cpu.so"
    try:
        return ctypes.CDLL(str(path))
    except OSError:
        return None


@functools.cache
def blas(dtype: torch.dtype) -> int:
    """The address of the matrix product that torch links (x86 wheels export MKL's), or 0."""
    library = _libtorch()
    function = getattr(library, "sgemm_" if dtype is torch.float32 else "dgemm_", None) if library else None
    # MKL can be told to stay on one thread per caller; a library that cannot would fight with our threads.
    if function is None or _limit() is None:
        return 0
    return ctypes.cast(function, ctypes.c_void_p).value or 0


@functools.cache
def _limit() -> Callable[[int], int] | None:
    function = getattr(_libtorch(), "MKL_Set_Num_Threads_Local", None)
    if function is None:
        return None
    function.restype = ctypes.c_int
    limit: Callable[[int], int] = function
    return limit


@functools.lru_cache(maxsize=4)
def _pool(workers: int, process: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(workers, thread_name_prefix="gradsmith")


def shares(rows: int, work: int) -> list[tuple[int, int]]:
    """Divide the rows of a batch among the threads that torch may use."""
    count = min(torch.get_num_threads(), rows, max(1, work // _WORTH_A_THREAD))
    size = -(-rows // count)
    return [(start, min(start + size, rows)) for start in range(0, rows, size)]


def run_shares(call: Callable[[int, int, int], None], rows: list[tuple[int, int]]) -> None:
    """Run `call(thread, first, last)` for every share; the caller's own thread takes the first."""
    if len(rows) == 1:
        call(0, *rows[0])
        return
    limit = _limit()

    def limited(thread: int, first: int, last: int) -> None:
        before = limit(1) if limit else 0
        try:
            call(thread, first, last)
        finally:
            if limit:
                limit(before)

    # A forked child has no threads of its parent's pool, hence the process in the key.
    pool = _pool(len(rows) - 1, os.getpid())
    waiting = [pool.submit(limited, i, *share) for i, share in enumerate(rows) if i]
    limited(0, *rows[0])
    for future in waiting:
        future.result()
