"""What a subject's code can reach by name, through every function on the way: its kernels may stand three modules away."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

# What lies behind these is nobody's own kernel.
_LIBRARIES = frozenset({"torch", "numpy", "scipy", "triton", "gradsmith"}) | sys.stdlib_module_names


def reached(root: Any) -> Iterator[Any]:
    """Every object that the code of a class or function names, and that the functions and classes among them name in turn.

    Decorated functions are followed through what their wrappers hold.
    """
    seen: dict[int, Any] = {}  # holding an object keeps its id its own
    waiting = [root]
    while waiting:
        value = waiting.pop()
        if id(value) in seen:
            continue
        seen[id(value)] = value
        yield value
        if isinstance(value, MethodType):
            waiting.append(value.__func__)
        elif isinstance(value, FunctionType) and not _in_a_library(value):
            waiting += _held(value)
            waiting += [value.__wrapped__] if hasattr(value, "__wrapped__") else []
            waiting += _named(value)
        elif isinstance(value, type) and not _in_a_library(value):
            waiting += [m for m in (getattr(m, "__func__", m) for m in vars(value).values()) if callable(m)]
            waiting += value.__bases__


def _named(function: FunctionType) -> Iterator[Any]:
    """Globals that the function names, and what it names in modules among them."""
    names = {name for code in _codes(function.__code__) for name in code.co_names}
    for name in names & function.__globals__.keys():
        value = function.__globals__[name]
        yield value
        if isinstance(value, ModuleType) and not _in_a_library(value):
            yield from (vars(value)[inner] for inner in names & vars(value).keys())


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _in_a_library(value: Any) -> bool:
    home = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
    return str(home or "").partition(".")[0] in _LIBRARIES


def _held(function: FunctionType) -> Iterator[Any]:
    """What a closure holds."""
    for cell in function.__closure__ or ():
        with contextlib.suppress(ValueError):  # a name that is bound later
            yield cell.cell_contents
