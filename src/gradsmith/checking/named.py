"""Functions that travel to another process by their names: `reference=`, `like=` and `project=` of an isolated check."""

from __future__ import annotations

import functools
import importlib
import pickle
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from gradsmith.findings import GradsmithError


@dataclass(frozen=True)
class Name:
    """A module, by its file where it has one, and where in it the function stands."""

    module: str
    path: str | None
    qualname: str


def named(function: Callable[..., Any], option: str) -> dict[str, Any]:
    """The name of a function, as it travels; refuses, in words, where another process would not find it.

    >>> named(functools.reduce, "reference")["qualname"]
    'reduce'
    """
    spelled = [text for text in (getattr(function, k, None) for k in ("__qualname__", "__name__")) if text]
    if not spelled:
        kind = (
            "a partial" if isinstance(function, functools.partial) else f"an object of type {type(function).__name__}"
        )
        raise _refused(option, kind)
    if "<" in spelled[0]:
        raise _refused(option, "a lambda" if "<lambda>" in spelled[0] else f"{spelled[0]}, defined in a function")
    for qualname in spelled:  # torch.tanh calls itself _VariableFunctionsClass.tanh
        module = sys.modules.get(pickle.whichmodule(function, qualname))  # type: ignore[attr-defined]
        if module is not None and _at(module, qualname) is function:
            return asdict(Name(module.__name__, _path(module, qualname, option), qualname))
    raise _refused(option, f"{spelled[0]}, which its module does not have under that name")


def _path(module: ModuleType, qualname: str, option: str) -> str | None:
    """The file of a module; None for one that is not written in Python, which is imported by name."""
    path = getattr(module, "__file__", None)
    if path is not None and path.endswith(".py") and Path(path).is_file():
        return str(Path(path).resolve())
    if module.__name__ == "__main__":
        raise _refused(option, f"{qualname}, defined in a notebook or at a prompt")
    return None


def found(name: Mapping[str, Any], module: ModuleType) -> Callable[..., Any]:
    """The function of this name; `module` is the subject's, which is not imported a second time."""
    from gradsmith.lab.subject.importing import import_file

    path = name["path"]
    own = getattr(module, "__file__", None)
    if path is None:
        home = importlib.import_module(name["module"])
    elif own is not None and Path(own).resolve() == Path(path):
        home = module
    else:
        home = import_file(Path(path))
    function: Callable[..., Any] | None = _at(home, name["qualname"])
    if function is None:
        raise GradsmithError(
            f"{path or name['module']} has no {name['qualname']} when it is imported in another process"
        )
    return function


def _at(module: ModuleType, qualname: str) -> Any:
    value: Any = module
    for part in qualname.split("."):
        value = getattr(value, part, None)
    return value


def _refused(option: str, what: str) -> GradsmithError:
    return GradsmithError(
        f"isolate=True runs in another process, which finds functions by name; {option}= is {what}. Write it as "
        f"`def {option}(...)` at the top level of a .py file and pass that, or leave out isolate=True."
    )
