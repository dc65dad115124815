"""Stand-ins for modules and names that are not here: importing them works, using them raises and says which one it was."""

from __future__ import annotations

import functools
import importlib.abc
import importlib.util
import sys
from collections.abc import Sequence
from types import FrameType, ModuleType
from typing import Any


class StandInUsed(RuntimeError):
    """Code ran into a stand-in. That says nothing about the code: what it needs is not here."""


class _Kind(type):
    """A stand-in is a class: one can inherit from it, and name it in an annotation or in `isinstance`."""

    why: str = ""

    def __new__(meta, name: str, bases: tuple[type, ...], body: dict[str, Any], **_: Any) -> Any:
        return type.__new__(meta, name, bases, body)

    def __init__(cls, *_: Any, **__: Any) -> None: ...

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return stand_in(f"{cls.__module__}.{cls.__qualname__}.{name}", cls.why)

    def __getitem__(cls, _: Any) -> Any:  # `Float[Tensor, "n d"]` in an annotation is no use yet
        return cls

    def _used(cls, *_: Any, **__: Any) -> Any:
        raise StandInUsed(f"{cls.__module__}.{cls.__qualname__} is a stand-in: {cls.why}")

    __call__ = __bool__ = __iter__ = __len__ = __contains__ = __lt__ = __gt__ = __le__ = __ge__ = _used
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __enter__ = __exit__ = _used


def stand_in(dotted: str, why: str) -> Any:
    """Something under this name that raises as soon as it is called, compared, iterated over or computed with.

    >>> stand_in("einops.rearrange", "einops is not installed")(1)
    Traceback (most recent call last):
        ...
    gradsmith.lab.subject.standins.StandInUsed: einops.rearrange is a stand-in: einops is not installed
    """
    module, _, name = dotted.rpartition(".")
    return _Kind(name, (), {"__module__": module, "__qualname__": name, "why": why})


def undecorated(function: Any, dotted: str) -> Any:
    """A function whose decorator is not here. It can be called; whatever else only the decorator gives it raises."""

    class Undecorated:
        __wrapped__ = function

        def __call__(self, *args: Any, **kwargs: Any) -> Any:
            return function(*args, **kwargs)

        def __getitem__(self, _: Any) -> Any:
            raise StandInUsed(f"{dotted} stands here without its decorator, which is not installed")

        def __getattr__(self, name: str) -> Any:
            if name.startswith("__"):
                raise AttributeError(name)
            return self[name]

    return functools.wraps(function)(Undecorated())


def is_stand_in(value: object) -> bool:
    return isinstance(value, (_Kind, StandInModule))


class StandInModule(ModuleType):
    """Stands in for a whole module."""

    __path__: list[str] = []
    why = ""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return stand_in(f"{self.__name__}.{name}", self.why)


class StandIns(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds a stand-in for each of its modules and their submodules, and before the real ones.

    For user code alone: torch looks whether triton is there, and computes with what it finds.
    """

    def __init__(self, modules: Sequence[str] = ()) -> None:
        self.why = dict.fromkeys(modules, "the real module is not installed")

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:
        if self._root(fullname) is not None and _asked_by_user():
            return importlib.util.spec_from_loader(fullname, self, is_package=True)
        return None

    def create_module(self, spec: Any) -> ModuleType:
        module = StandInModule(spec.name)
        module.why = self.why[self._root(spec.name) or ""]
        _made.add(spec.name)
        return module

    def exec_module(self, module: ModuleType) -> None: ...

    def install(self) -> None:
        if self not in sys.meta_path:
            sys.meta_path.insert(0, self)

    def _root(self, fullname: str) -> str | None:
        return next((n for n in self.why if fullname == n or fullname.startswith(n + ".")), None)


_made: set[str] = set()  # names of modules: to look at all that are loaded would write into the memory that forks share


def hide() -> None:
    """Take stand-ins out of `sys.modules`, where torch would find them; who imported one has it."""
    for name in _made:
        if isinstance(sys.modules.get(name), StandInModule):
            del sys.modules[name]


def _asked_by_user() -> bool:
    frame = sys._getframe(2)
    while frame.f_back is not None and _home(frame) == "importlib":
        frame = frame.f_back
    return _home(frame) not in ("torch", "gradsmith")


def _home(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]
