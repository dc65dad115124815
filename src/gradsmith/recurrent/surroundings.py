"""What a step can see besides its arguments: closures, globals, bound modules, and every tensor among them.

A plan bakes in Python values (a leak of 0.9, `self.training`) and must read tensors anew at every call. So each
call walks what the step can see: values go into a key that the plan is stored under, tensors into a list.
Walking costs 20-80 microseconds; a step made anew at every call (a lambda) finds the plan of its predecessor.
"""

from __future__ import annotations

import functools
import hashlib
import sys
import types
from collections import deque
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple

import torch

_PLAIN = (bool, int, float, complex, str, bytes, type(None), torch.dtype, torch.device, torch.Size, range, type(...))
_CONTAINERS = frozenset({list, tuple, set, frozenset, dict, deque})
_MODULE_NOISE = frozenset(
    {"_parameters", "_buffers", "_modules", "_non_persistent_buffers_set", "_is_full_backward_hook"}
)
# What Python and torch keep on classes for themselves: no step reads them.
_CLASS_NOISE = frozenset({"_abc_impl", "_backward_cls"})
_MAX_DEPTH = 12
_MAX_ITEMS = 2048


class ById(NamedTuple):
    """An object that counts as the same only if it is the same object; `Surroundings.held` has it."""

    address: int


class LibraryModule(NamedTuple):
    """A module of torch, NumPy or the standard library."""

    name: str


class UserModule(NamedTuple):
    """Any other module, with those of its values that the step mentions by name."""

    name: str
    values: Any


class LibraryFunction(NamedTuple):
    """A function of a library: known by its name, but its closure may hold the user's objects."""

    module: str
    code: types.CodeType
    cells: Any


@dataclass
class Surroundings:
    """The key of all Python values a step can see, and the tensors among them with their names."""

    key: tuple[Any, ...] = ()
    tensors: list[torch.Tensor] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    held: list[object] = field(default_factory=list)
    """Objects that the key knows by identity: kept alive, so that an id is never reused."""


def look_around(step: object) -> Surroundings:
    walk = _Walk()
    key = walk.see(step, "step", 0)
    found = walk.found
    found.key = (key,)
    return found


@functools.lru_cache(maxsize=4096)
def _names_in(code: types.CodeType) -> tuple[str, ...]:
    names = list(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names.extend(_names_in(constant))
    return tuple(dict.fromkeys(names))


@functools.lru_cache(maxsize=4096)
def is_library(module: str) -> bool:
    """Code of torch, NumPy and the standard library is covered by the torch version, not walked."""
    top = module.partition(".")[0]
    return top in {"torch", "numpy", "math", "functorch", "gradsmith"} or (
        top in sys.stdlib_module_names and top != "__main__"
    )


class _Walk:
    def __init__(self) -> None:
        self.found = Surroundings()
        self.seen: dict[int, int] = {}
        self.mentioned: set[tuple[int, tuple[str, ...]]] = set()

    def see(self, thing: Any, path: str, depth: int) -> Any:
        if isinstance(thing, _PLAIN):
            return (type(thing), repr(thing) if isinstance(thing, float) else thing)
        known = self.seen.get(id(thing))
        if known is not None:
            return ("again", known)
        self.seen[id(thing)] = len(self.seen)
        if isinstance(thing, torch.Tensor):
            return self._tensor(thing, path)
        if depth > _MAX_DEPTH:
            return self._by_identity(thing)
        if isinstance(thing, types.FunctionType):
            return self._function(thing, path, depth)
        if isinstance(thing, types.MethodType):
            return ("method", self.see(thing.__func__, path, depth), self.see(thing.__self__, path, depth))
        if isinstance(thing, functools.partial):
            parts = (thing.func, thing.args, thing.keywords)
            return ("partial", tuple(self.see(part, path, depth + 1) for part in parts))
        if isinstance(thing, list | tuple | set | frozenset | dict | deque):
            return self._container(thing, path, depth)
        if type(thing).__module__ == "numpy" and hasattr(thing, "tobytes") and not thing.dtype.hasobject:
            return ("numpy", thing.shape, str(thing.dtype), hashlib.sha256(thing.tobytes()).digest())
        if isinstance(thing, type):
            return ("class", self._by_identity(thing), self._class(thing, depth))
        if isinstance(thing, types.ModuleType | types.BuiltinFunctionType | Enum):
            return self._by_identity(thing)
        return self._instance(thing, path, depth)

    def _by_identity(self, thing: object) -> ById:
        self.found.held.append(thing)
        return ById(id(thing))

    def _tensor(self, tensor: torch.Tensor, path: str) -> Any:
        self.found.tensors.append(tensor)
        self.found.names.append(path)
        own = self.see(tensor.__dict__, path, 0) if tensor.__dict__ else None
        return ("tensor", tuple(tensor.shape), tensor.dtype, tensor.requires_grad, tensor.device, own)

    def _function(self, function: types.FunctionType, path: str, depth: int) -> Any:
        if is_library(function.__module__ or ""):
            # Library closures (a wrapped cell) still hold the user's objects.
            return LibraryFunction(function.__module__, function.__code__, self._cells(function, path, depth))
        code = function.__code__
        outside: list[Any] = []
        names = _names_in(code)
        for name in names:
            if name in function.__globals__:
                value = function.__globals__[name]
                if isinstance(value, types.ModuleType):
                    outside.append((name, self._module_values(value, names, depth)))
                else:
                    outside.append((name, self.see(value, name, depth + 1)))
        own = (function.__defaults__, function.__kwdefaults__, function.__dict__)
        defaults = tuple(self.see(part, path, depth + 1) if part else None for part in own)
        return ("function", code, defaults, self._cells(function, path, depth), tuple(outside))

    def _cells(self, function: types.FunctionType, path: str, depth: int) -> Any:
        cells: list[Any] = []
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
            try:
                value = cell.cell_contents
            except ValueError:
                cells.append("empty")
                continue
            cells.append(self.see(value, name, depth + 1))
        return tuple(cells)

    def _module_values(self, module: types.ModuleType, names: tuple[str, ...], depth: int) -> Any:
        """`settings.leak`, `package.settings.leak`: the values a function mentions by name."""
        if is_library(module.__name__):
            return LibraryModule(module.__name__)
        if (id(module), names) in self.mentioned:
            return UserModule(module.__name__, ())
        self.mentioned.add((id(module), names))
        values = vars(module)
        found: list[Any] = []
        for name in names:
            value = values.get(name)
            if isinstance(value, types.ModuleType):
                found.append((name, self._module_values(value, names, depth + 1)))
            elif name in values:
                found.append((name, self.see(value, f"{module.__name__}.{name}", depth + 1)))
        return UserModule(module.__name__, tuple(found))

    def _container(self, thing: Any, path: str, depth: int) -> Any:
        kind: Any = type(thing) if type(thing) in _CONTAINERS else self.see(type(thing), path, depth + 1)
        if len(thing) > _MAX_ITEMS:
            return (kind, self._by_identity(thing), len(thing))
        if isinstance(thing, set | frozenset):
            plain = all(isinstance(item, _PLAIN) for item in thing)
            return (kind, None if plain else self._by_identity(thing), frozenset(repr(item) for item in thing))
        if isinstance(thing, dict):
            items = tuple(
                (self.see(k, path, depth + 1), self.see(v, f"{path}[{k!r}]", depth + 1)) for k, v in thing.items()
            )
            return (kind, items)
        return (kind, tuple(self.see(v, f"{path}[{i}]", depth + 1) for i, v in enumerate(thing)))

    def _class(self, cls: type, depth: int) -> Any:
        """Methods and values of a class and of those it inherits from, as far as they are the user's."""
        found: list[Any] = []
        for owner in cls.__mro__:
            if owner is object or is_library(owner.__module__):
                continue
            for name, value in vars(owner).items():
                if isinstance(value, staticmethod | classmethod):
                    value = value.__func__
                elif isinstance(value, property):
                    value = value.fget
                elif isinstance(value, functools.cached_property):
                    value = value.func
                elif name == "__repr__" and hasattr(value, "__wrapped__") and "__dataclass_fields__" in vars(owner):
                    continue  # made from the fields, and guarded against recursion by the id of its object
                if isinstance(value, types.FunctionType) or not (name.startswith("__") or name in _CLASS_NOISE):
                    found.append((name, self.see(value, name, depth + 1)))
        return tuple(found)

    def _instance(self, thing: Any, path: str, depth: int) -> Any:
        values = getattr(thing, "__dict__", None)
        if values is None:
            return self._by_identity(thing)
        parts: list[Any] = [self._by_identity(type(thing))]
        if not is_library(type(thing).__module__):
            parts.append(self._class(type(thing), depth))
        if isinstance(thing, torch.nn.Module):
            for group in (thing._parameters, thing._buffers, thing._modules):
                for name, value in group.items():
                    parts.append((name, self.see(value, f"{path}.{name}", depth + 1)))
        for name, value in values.items():
            if name not in _MODULE_NOISE and not (name.endswith("_hooks") and not value):
                parts.append((name, self.see(value, f"{path}.{name}", depth + 1)))
        return tuple(parts)
