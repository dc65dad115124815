"""Code that reads memory behind PyTorch's back: a shape that does not fit is then no exception but a crash, or nonsense."""

from __future__ import annotations

import importlib.util
import inspect
import os
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

from gradsmith.lab.subject.reached import reached
from gradsmith.lab.subject.target import Target
from gradsmith.source.loaded import file_named

if TYPE_CHECKING:
    from gradsmith.lab.lab import Lab

_KERNELS = ("InterpretedFunction", "JITFunction")
INTERPRETER = "triton interpreter"  # its column of the compatibility matrix


def takes_pointers(lab: Lab) -> bool:
    """Code that hands bare pointers to a library reads past the end of a tensor of a narrower type."""
    return _mentions(lab.target.path, "data_ptr", "ctypes")


def foreign(lab: Lab) -> bool:
    """Whether the subject gives addresses away."""
    return gives_addresses(lab.target)


def gives_addresses(target: Target) -> bool:
    """Whether it gives addresses to a library, to an extension, to a Triton kernel."""
    return _mentions(target.path, "data_ptr", "ctypes", "cpp_extension") or uses_triton(target)


def leaves_torch(target: Target) -> bool:
    """Whether numbers are computed outside torch: by a library, an extension, NumPy; also in functions it imported."""
    reached = _reachable(_globals(target))
    files = {value.__code__.co_filename for value in reached if isinstance(value, FunctionType)}
    mentioned = any(_mentions(path, "data_ptr", "ctypes", "cpp_extension", "numpy") for path in files | {target.path})
    return mentioned or any(_is_compiled(value) for value in reached)


def runs_kernels(target: Target) -> bool:
    """Whether Triton kernels take part, and run in this process: they compute in their own precision."""
    return interpreted() and uses_triton(target)


def uses_triton(target: Target) -> bool:
    """Whether the subject's file, or what its code reaches through other modules, holds Triton kernels."""
    file = file_named(target.path) if target.path is not None else None
    if file is not None and file.imports.module("triton"):
        return True
    if "triton" not in sys.modules:
        return False
    root = target.function or (type(target.module) if target.module is not None else target.original)
    return any(_is_kernel(value) for value in reached(root))


def interpreted() -> bool:
    """Whether Triton runs kernels in its interpreter, on the CPU."""
    return os.environ.get("TRITON_INTERPRET", "0") not in ("", "0", "false")


def needs_interpreter(target: Target) -> bool:
    """Whether kernels take part that only a worker can run: there the interpreter is ready before they are defined."""
    if (
        not isinstance(target.function or target.original, type)
        or target.path is None
        or not os.path.isfile(target.path)
    ):
        return False  # another process could not find it by name
    if importlib.util.find_spec("triton") is None or not uses_triton(target):
        return False
    import torch

    return not _prepared() and not torch.cuda.is_available()


def _prepared() -> bool:
    shims = sys.modules.get("gradsmith.lab.triton.shims")
    return shims is not None and bool(shims.installed())


def interpreter_cell(target: Target, trouble: str = "") -> dict[str, str]:
    """The matrix's column about the interpreter, for subjects with Triton kernels; `trouble` is what it died of."""
    if not uses_triton(target):
        return {}
    if importlib.util.find_spec("triton") is None:
        return {INTERPRETER: "not tried: triton is not installed"}
    if not interpreted():
        return {INTERPRETER: "not tried: TRITON_INTERPRET=1 has to be set before triton is imported"}
    return {INTERPRETER: f"fails: {trouble}" if trouble else "works"}


def interpreter_note(target: Target) -> list[str]:
    """A line that says where the kernels ran."""
    if not uses_triton(target) or not interpreted() or importlib.util.find_spec("triton") is None:
        return []
    note = f"{target.name}: its Triton kernels ran under Triton's interpreter on the CPU, not on a GPU"
    counts = sys.modules.get("gradsmith.lab.triton.counts")
    stood_in = ", ".join(counts.counted()) if counts is not None else ""
    return [f"{note}; gradsmith stood in for: {stood_in}" if stood_in else note]


def _globals(target: Target) -> dict[str, Any]:
    home = sys.modules.get(getattr(target.function or target.original, "__module__", None) or "")
    return vars(home) if home is not None else {}


def _is_compiled(value: Any) -> bool:
    """A module of machine code, or a function of one; torch's own is not foreign."""
    name = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
    if not isinstance(value, (ModuleType, BuiltinFunctionType)) or name is None or name.partition(".")[0] == "torch":
        return False
    return str(getattr(sys.modules.get(name), "__file__", None) or "").endswith(tuple(EXTENSION_SUFFIXES))


def _reachable(names: dict[str, Any]) -> list[Any]:
    """Globals of the subject's module, and those of the functions it imported from other modules of the user's."""
    found = list(names.values())
    for value in list(found):
        if isinstance(value, FunctionType) and value.__globals__ is not names:
            used = inspect.unwrap(value)
            if isinstance(used, FunctionType):
                found += [used.__globals__.get(name) for name in used.__code__.co_names]
    return found


def _is_kernel(value: Any) -> bool:
    # Autotuner and Heuristics hold the kernel they tune in `fn`; packages derive classes of their own from them.
    bases = type(value).__mro__
    inner = getattr(value, "fn", None) if any(base.__module__.startswith("triton.") for base in bases) else None
    return any(base.__name__ in _KERNELS for base in bases) or (inner is not None and _is_kernel(inner))


def _mentions(path: str | None, *words: str) -> bool:
    file = file_named(path) if path is not None else None
    return file is not None and file.mentions(*words)
