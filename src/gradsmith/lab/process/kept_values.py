"""What code keeps between calls, as it is now: two such pictures tell whether a call has written to it."""

from __future__ import annotations

import functools
import types
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

_DEPTH = 4
_MOST_ENTRIES = 64  # of one container; of longer ones the length tells
_MOST = 4000
_Plain = (bool, int, float, complex, str, bytes, type(None))


@dataclass(frozen=True)
class Picture:
    """A mark for every value, by the name it is kept under. `held` keeps them alive: an id stays that of one object."""

    marks: Mapping[str, object]
    held: tuple[Any, ...]

    def changed(self, later: Picture) -> list[str]:
        """The names whose value is another one later, or was written into, or is new."""
        names = dict.fromkeys((*self.marks, *later.marks))
        return [name for name in names if self.marks.get(name) != later.marks.get(name)]


def pictured(roots: Sequence[tuple[str, Any]]) -> Picture:
    """Everything that can be reached from these by attributes, entries, defaults and closures, a few steps deep.

    What stands in a file is named without it, where the file itself is given under the name "".

    >>> kept = {"last": None}
    >>> before = pictured([("kept", kept)])
    >>> kept["last"] = 3
    >>> before.changed(pictured([("kept", kept)]))
    ["kept['last']"]
    """
    marks: dict[str, object] = {}
    held: list[Any] = []
    seen: set[int] = set()
    homes = {_home(value) for _, value in roots}
    waiting = [(name, value, 0) for name, value in roots]
    while waiting and len(held) < _MOST:
        name, value, depth = waiting.pop(0)
        marks[name] = _mark(value)
        held.append(value)
        if id(value) not in seen and depth < _DEPTH:
            seen.add(id(value))
            waiting += [(name + part, inner, depth + 1) for part, inner in _parts(value, homes)]
    return Picture({name.lstrip("."): mark for name, mark in marks.items()}, tuple(held))


def _mark(value: Any) -> object:
    if isinstance(value, Tensor):
        return id(value), None if value.is_inference() else value._version
    if isinstance(value, _Plain):
        return type(value), value if value == value else "nan"
    if isinstance(value, (dict, list, set, tuple)):
        return id(value) if not isinstance(value, tuple) else tuple, len(value)
    return id(value), value.cache_info().currsize if isinstance(value, functools._lru_cache_wrapper) else None


def _parts(value: Any, homes: Collection[str]) -> Iterator[tuple[str, Any]]:
    if isinstance(value, (Tensor, *_Plain)):
        yield from ((f".{name}", inner) for name, inner in getattr(value, "__dict__", {}).items())
    elif isinstance(value, dict):
        yield from ((f"[{_key(key)}]", inner) for key, inner in list(value.items())[-_MOST_ENTRIES:])
    elif isinstance(value, (list, tuple)):
        yield from ((f"[{number}]", inner) for number, inner in enumerate(value[:_MOST_ENTRIES]))
    elif isinstance(value, (staticmethod, classmethod)):
        yield "", value.__func__
    elif isinstance(value, types.FunctionType):
        if value.__module__ in homes:
            yield from _of_function(value)
    elif isinstance(value, (type, types.ModuleType)):
        if _home(value) in homes:
            yield from _named(value)
    elif hasattr(value, "__dict__"):
        yield from _named(value)


def _key(key: Any) -> str:
    """What can be said of a key without running code of the user's."""
    plain = isinstance(key, _Plain) or (isinstance(key, tuple) and all(isinstance(part, _Plain) for part in key))
    return repr(key)[:40] if plain else f"{type(key).__name__} {id(key)}"


def _named(owner: Any) -> Iterator[tuple[str, Any]]:
    for name, value in list(vars(owner).items()):
        if not (name.startswith("__") and name.endswith("__")):
            yield f".{name}", value


def _of_function(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    yield from ((f".{name}", value) for name, value in vars(function).items())
    yield from ((f".__defaults__[{n}]", value) for n, value in enumerate(function.__defaults__ or ()))
    yield from ((f".__kwdefaults__[{k!r}]", value) for k, value in (function.__kwdefaults__ or {}).items())
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
        try:
            yield f".{name}", cell.cell_contents
        except ValueError:  # not bound yet
            continue


def _home(value: Any) -> str:
    if isinstance(value, types.ModuleType):
        return value.__name__
    own = value if isinstance(value, (type, types.FunctionType)) else type(value)
    return str(getattr(own, "__module__", ""))
