"""Rows of a batch never meet, so every thread takes its rows through the whole of time without waiting for the others."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch

from .team import team

_WORTH_A_THREAD = 1 << 17  # elements per call; below, waking a thread (50 microseconds) costs more than it saves


@functools.lru_cache(maxsize=4)
def _pool(workers: int, process: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(workers, thread_name_prefix="gradsmith")


def shares(rows: int, work: int, worth: int | None = None) -> list[tuple[int, int]]:
    """Divide the rows of a batch among the threads that torch may use; each should have `worth` of the work."""
    count = min(torch.get_num_threads(), rows, max(1, work // (worth or _WORTH_A_THREAD)))
    size = -(-rows // count)
    return [(start, min(start + size, rows)) for start in range(0, rows, size)]


def run_shares(call: Callable[[int, int, int], None], rows: list[tuple[int, int]]) -> None:
    """Run `call(thread, first, last)` for every share; the caller's own thread takes the first."""
    if len(rows) == 1:
        call(0, *rows[0])
        return
    # A forked child has no threads of its parent's pool, hence the process in the key.
    pool = _pool(len(rows) - 1, os.getpid())
    waiting = [pool.submit(call, i, *share) for i, share in enumerate(rows) if i]
    call(0, *rows[0])
    for future in waiting:
        future.result()


def call_shares(function: Any, given: Callable[[int, int, int], Sequence[Any]], rows: list[tuple[int, int]]) -> None:
    """Call `function`, which is C, with the arguments `given(thread, first, last)` for every share, on torch's threads."""
    calls = [given(i, *share) for i, share in enumerate(rows)]
    if len(calls) == 1:
        function(*calls[0])
    elif (run := team(function.argtypes)) is not None:
        run(function, calls)
    else:
        run_shares(lambda thread, first, last: function(*calls[thread]), rows)
