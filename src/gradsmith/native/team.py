"""Calls of C on the threads that torch itself computes with.

After an operation torch's OpenMP keeps its threads spinning for milliseconds, so that the next one starts at once. A thread of our
own waits for such a core, and so do they for ours: after `torch.sin`, rms_norm of 4096 x 1024 took 2.0 ms on two threads, and 1.5
after itself. OpenMP runs whatever function it is given, so ours is given to the same threads.
"""

from __future__ import annotations

import ctypes
import functools
import os
import struct
from collections.abc import Callable, Sequence
from typing import Any

from gradsmith.lab.process.torch_says import openmp_parallel

from .compile import load
from .refused import Refused

_PROCESS = os.getpid()
_KINDS: dict[Any, tuple[str, str, str]] = {
    ctypes.c_void_p: ("void *", "p", "Q"),
    ctypes.c_double: ("double", "d", "d"),
    ctypes.c_long: ("long", "l", "q"),
}
# Whoever of the team comes first takes the next call: OpenMP may send fewer threads than there are calls, or more.
_SOURCE = r"""
typedef union {{ void *p; double d; long l; long long whole; }} word;
typedef struct {{ void (*function)({types}); const word *given; long calls, next; }} work;
static void member(void *data) {{
  work *all = data;
  for (long i; (i = __atomic_fetch_add(&all->next, 1, __ATOMIC_RELAXED)) < all->calls;) {{
    const word *w = all->given + i * {count};
    all->function({words});
  }}
}}
void together(void (*parallel)(void (*)(void *), void *, unsigned, unsigned), void *function, const word *given, long calls) {{
  work all = {{function, given, calls, 0}};
  parallel(member, &all, 0, 0);
}}
"""

Run = Callable[[Any, Sequence[Sequence[Any]]], None]


def team(kinds: Sequence[Any]) -> Run | None:
    """`run(function, calls)` for functions of C with these ctypes arguments; None where torch has no such threads to lend.

    A forked child has no threads of its parent's: there OpenMP would wait for them for ever.
    """
    return _team(tuple(kinds)) if os.getpid() == _PROCESS else None


@functools.cache
def _team(kinds: tuple[Any, ...]) -> Run | None:
    parallel = openmp_parallel()
    try:
        together = None if parallel is None else load(_source(kinds)).together
    except Refused:
        return None
    if together is None:
        return None
    together.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_long]
    together.restype = None
    form = "=" + "".join(_KINDS[kind][2] for kind in kinds)

    def run(function: Any, calls: Sequence[Sequence[Any]]) -> None:
        given = b"".join(struct.pack(form, *(0 if value is None else value for value in call)) for call in calls)
        together(parallel, ctypes.cast(function, ctypes.c_void_p), given, len(calls))

    return run


def _source(kinds: tuple[Any, ...]) -> str:
    types = ", ".join(_KINDS[kind][0] for kind in kinds)
    words = ", ".join(f"w[{i}].{_KINDS[kind][1]}" for i, kind in enumerate(kinds))
    return _SOURCE.format(types=types, words=words, count=len(kinds))
