"""Kernels written by hand: C that takes pointers, numbers and a share of the rows, called by ctypes from several threads."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Sequence

import torch
from torch import Tensor

from .c_prelude import prelude
from .compile import load
from .memory import reuse_freed_pages
from .refused import Refused
from .threads import call_shares, shares


class Kernels:
    """The functions of one C source, for float32 and float64; `None` for a dtype where they cannot be compiled.

    Every function takes its tensors, then its real numbers (double), then its whole numbers (long), then the number of
    the thread and the first and last row of its share.
    """

    def __init__(self, source: str) -> None:
        self.source = source
        self.library = functools.cache(self._library)
        self._functions: dict[tuple[str, torch.dtype, int, int, int], object] = {}

    def _library(self, dtype: torch.dtype) -> ctypes.CDLL | Refused:
        reuse_freed_pages()
        try:
            return load(prelude(dtype) + self.source)
        except Refused as why:
            return why

    def ready(self, dtype: torch.dtype) -> bool:
        """Whether the kernels can be called for this dtype; compiles them the first time."""
        return not isinstance(self.library(dtype), Refused)

    def loaded(self, dtype: torch.dtype) -> ctypes.CDLL:
        """The library for this dtype; raises Refused where it cannot be compiled."""
        library = self.library(dtype)
        if isinstance(library, Refused):
            raise library
        return library

    def threads(self, rows: int, work: int) -> int:
        """How many shares `run` will make."""
        return len(shares(rows, work)) if rows else 1

    def run(
        self, name: str, tensors: Sequence[Tensor | None], reals: Sequence[float], wholes: Sequence[int], rows: int, work: int
    ) -> None:  # fmt: skip
        """Call `name` on every share of the rows; `work` is the number of elements, for the number of threads."""
        first = next(t for t in tensors if t is not None and t.is_floating_point())
        key = (name, first.dtype, len(tensors), len(reals), len(wholes))
        function = self._functions.get(key)
        if function is None:
            function = getattr(self.library(first.dtype), name)
            kinds = [ctypes.c_void_p] * len(tensors) + [ctypes.c_double] * len(reals)
            function.argtypes = kinds + [ctypes.c_long] * (len(wholes) + 3)
            function.restype = None
            self._functions[key] = function
        pointers = [None if t is None else t.data_ptr() for t in tensors]
        if rows:
            call_shares(function, lambda *share: (*pointers, *reals, *wholes, *share), shares(rows, work))
