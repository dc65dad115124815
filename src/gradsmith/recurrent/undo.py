"""Planning runs the step a dozen times, and leaves no trace: whatever Python values a step changes are put back.

A counter would otherwise have counted, and a value that a step computes once and keeps would be a tensor without data.
Since `surroundings` reads all that a step can see, it also knows all that a step can change.
"""

from __future__ import annotations

import contextlib
import types
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from . import library
from .bytecode import reads_of
from .surroundings import Walk, layout_of

_MISSING = object()
_CELL_CONTENTS: Any = vars(types.CellType)["cell_contents"]


@contextlib.contextmanager
def undone(step: object) -> Iterator[None]:
    """Put back, at the end, every Python value that `step` can see."""
    record = _Record()
    record.see(step, "step", 0)
    try:
        yield
    finally:
        for restore in reversed(record.restores):
            restore()


class _Record(Walk):
    def __init__(self) -> None:
        super().__init__()
        self.restores: list[Callable[[], None]] = []

    def _keep_dict(self, values: dict[Any, Any]) -> None:
        before = dict(values)

        def restore() -> None:
            if len(values) != len(before) or any(values.get(k, _MISSING) is not v for k, v in before.items()):
                values.clear()
                values.update(before)

        self.restores.append(restore)

    def _keep_slot(self, owner: Any, slot: Any) -> None:
        """A slot of an object, or the content of a closure's cell."""

        def read() -> Any:
            try:
                return slot.__get__(owner)
            except (AttributeError, ValueError):
                return _MISSING

        before = read()

        def restore() -> None:
            if read() is not before:
                slot.__delete__(owner) if before is _MISSING else slot.__set__(owner, before)

        self.restores.append(restore)

    def _dict(self, thing: dict[Any, Any], path: str, depth: int) -> Any:
        self._keep_dict(thing)
        return super()._dict(thing, path, depth)

    def _sequence(self, thing: Any, path: str, depth: int, kind: Any = None) -> Any:
        before = list(thing)

        def restore() -> None:
            now = list(thing)
            if len(now) != len(before) or any(a is not b for a, b in zip(now, before)):
                thing.clear()
                (thing.update if isinstance(thing, set) else thing.extend)(before)

        if isinstance(thing, list | set | deque):
            self.restores.append(restore)
        return super()._sequence(thing, path, depth, kind)

    def _instance(self, thing: Any, path: str, depth: int) -> Any:
        values = getattr(thing, "__dict__", None)
        if isinstance(values, dict):
            self._keep_dict(values)
            for group in ("_parameters", "_buffers", "_modules"):
                if isinstance(values.get(group), dict):
                    self._keep_dict(values[group])
        cls: type = type(thing)
        for descriptor in layout_of(cls).slots:
            self._keep_slot(thing, descriptor)
        return super()._instance(thing, path, depth)

    def _function(self, function: types.FunctionType, path: str, depth: int) -> Any:
        self._keep_dict(function.__dict__)
        for cell in function.__closure__ or ():
            self._keep_slot(cell, _CELL_CONTENTS)
        if not library.is_library_file(function.__code__.co_filename):
            space, names = function.__globals__, {name[0] for name in reads_of(function.__code__).globals}
            before = {name: space.get(name, _MISSING) for name in names}

            def restore() -> None:
                for name, value in before.items():
                    if space.get(name, _MISSING) is not value:
                        space.pop(name) if value is _MISSING else space.__setitem__(name, value)

            self.restores.append(restore)
        return super()._function(function, path, depth)

    def _own_class(self, owner: type, path: str, depth: int) -> Any:
        before = dict(vars(owner))

        def restore() -> None:
            now = dict(vars(owner))
            for name in now.keys() - before.keys():
                if isinstance(now[name], types.FunctionType) or not name.startswith("__"):
                    delattr(owner, name)
            for name, value in before.items():
                if now.get(name, _MISSING) is not value:
                    setattr(owner, name, value)

        self.restores.append(restore)
        return super()._own_class(owner, path, depth)
