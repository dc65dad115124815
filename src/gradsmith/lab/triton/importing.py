"""Kernels are seen in the source of a module before it runs: only then can the interpreter be made ready in time."""

from __future__ import annotations

import importlib.util
import os
import sys
from importlib.machinery import ModuleSpec, PathFinder
from typing import Any

from gradsmith.source.imports import file_imports

_NOT_USERS = ("torch", "triton", "gradsmith")


def interpret() -> bool:
    """Without a GPU, kernels run under Triton's interpreter; it has to be told before anything imports triton."""
    import torch

    if importlib.util.find_spec("triton") is None or torch.cuda.is_available():
        return False
    os.environ.setdefault("TRITON_INTERPRET", "1")
    return True


def watch(first: str | None) -> None:
    """From now on, a module that imports triton finds an interpreter without gaps; `first` is a file about to be run.

    Nothing happens where triton is missing, or where a GPU can run the kernels themselves.
    """
    if not interpret():
        return
    sys.meta_path.insert(0, _Watcher())
    if first is not None and file_imports(first, "triton"):
        _install()


def _install() -> None:
    from gradsmith.lab.triton import shims

    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, _Watcher)]
    shims.install()


class _Watcher:
    """Finds nothing; looks at what others are about to find."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name.partition(".")[0] in _NOT_USERS or name in sys.stdlib_module_names:
            return None
        found = PathFinder.find_spec(name, path)
        if found is not None and (found.origin or "").endswith(".py") and file_imports(str(found.origin), "triton"):
            _install()
        return None
