"""Let a step compute with stand-ins for the tensors that it reaches by closure, attribute or global.

A torch function mode sees every operation, but not the arguments of `Function.apply`. Where a step hands such a tensor to a
Function, the stand-in is also put where the step finds the tensor (a parameter of a module, a cell, a global, an item of a
list or dict), and taken away afterwards. Other threads that ask what the step can see wait meanwhile.
"""

from __future__ import annotations

import contextlib
import threading
import types
from collections.abc import Callable, Iterator
from typing import Any

from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree

from . import library
from .bytecode import reads_of
from .surroundings import CannotRead, Walk


class Substitute(TorchFunctionMode):
    """Operations that are handed the real tensor compute with its stand-in."""

    def __init__(self, stand_ins: dict[int, Tensor]) -> None:
        super().__init__()
        self.stand_ins = stand_ins

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        def swap(value: Any) -> Any:
            return self.stand_ins.get(id(value), value) if isinstance(value, Tensor) else value

        args, kwargs = pytree.tree_map(swap, (args, kwargs or {}))
        return func(*args, **kwargs)


PLACING = threading.RLock()
"""Held while stand-ins are where the step finds its tensors."""


@contextlib.contextmanager
def standing_in(step: object, seen: list[Tensor], others: list[Tensor], placed: bool) -> Iterator[None]:
    """While this lasts, `step` computes with `others` instead of `seen`; `placed`: it also finds them there."""
    stand_ins = {id(real): other for real, other in zip(seen, others) if real is not other}
    if not placed or not stand_ins:
        with Substitute(stand_ins):
            yield
        return
    with PLACING, contextlib.ExitStack() as put:
        finder = _Finder(stand_ins)
        with contextlib.suppress(CannotRead):  # such a step is never planned; the mode alone serves its loop
            finder.see(step, "step", 0)
        for replace, restore in finder.found_at:
            replace()
            put.callback(restore)
        with Substitute(stand_ins):
            yield


class _Finder(Walk):
    """Walks what a step can see and notes every place that holds one of the tensors."""

    def __init__(self, stand_ins: dict[int, Tensor]) -> None:
        super().__init__()
        self.stand_ins = stand_ins
        self.found_at: list[tuple[Callable[[], None], Callable[[], None]]] = []

    def _note(self, value: Any, write: Callable[[Any], None]) -> None:
        other = self.stand_ins.get(id(value)) if isinstance(value, Tensor) else None
        if other is not None:
            self.found_at.append((lambda: write(other), lambda: write(value)))

    def _note_items(self, values: dict[Any, Any]) -> None:
        for key, value in values.items():
            self._note(value, lambda new, key=key: values.__setitem__(key, new))  # type: ignore[misc]

    def _dict(self, thing: dict[Any, Any], path: str, depth: int) -> Any:
        self._note_items(thing)
        return super()._dict(thing, path, depth)

    def _sequence(self, thing: Any, path: str, depth: int, kind: Any = None) -> Any:
        if isinstance(thing, list):
            for i, value in enumerate(thing):
                self._note(value, lambda new, i=i: thing.__setitem__(i, new))  # type: ignore[misc]
        return super()._sequence(thing, path, depth, kind)

    def _instance(self, thing: Any, path: str, depth: int) -> Any:
        values = getattr(thing, "__dict__", None)
        if isinstance(values, dict):
            self._note_items(values)
            for group in ("_parameters", "_buffers"):
                if isinstance(values.get(group), dict):
                    self._note_items(values[group])
        return super()._instance(thing, path, depth)

    def _function(self, function: types.FunctionType, path: str, depth: int) -> Any:
        for cell in function.__closure__ or ():
            with contextlib.suppress(ValueError):  # an empty cell
                self._note(cell.cell_contents, lambda new, cell=cell: setattr(cell, "cell_contents", new))  # type: ignore[misc]
        if not library.is_library_file(function.__code__.co_filename):
            space = function.__globals__
            for root in {name[0] for name in reads_of(function.__code__).globals}:
                self._note(space.get(root), lambda new, root=root, space=space: space.__setitem__(root, new))  # type: ignore[misc]
        return super()._function(function, path, depth)
