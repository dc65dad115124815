"""Arguments that hold others: `Checkpoint.apply(layer, x, *layer.parameters())`, or all of them in one flat tensor.

Such a Function counts on the parameters it is given being those of the layer. Every run works on copies, so the holder
(a module, a bound method, a partial, a function with its closure and the globals it reads) is copied with them, and holds
the copies. The user's module is left alone: a copied function gets globals of its own.
"""

from __future__ import annotations

import copy
import dis
import functools
import itertools
import types
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn


class HeldTensor(NamedTuple):
    """A tensor that an argument holds, and that is given once more: as it is, or flat, from element `start` on."""

    tensor: Tensor
    start: int | None = None

    def twin(self, given: Tensor) -> Tensor:
        """What stands for it in what is given."""
        if self.start is None:
            return given
        return given[self.start : self.start + self.tensor.numel()].view(self.tensor.shape)


def held_in(given: Tensor, holders: Sequence[object]) -> tuple[HeldTensor, ...]:
    """The tensors of the holders that are given in this one, too."""
    held = [list(tensors_held(holder).values()) for holder in holders]
    if any(tensor is given for tensors in held for tensor in tensors):
        return (HeldTensor(given),)
    return next((found for tensors in held if (found := _in_a_row(given, tensors))), ())


def _in_a_row(given: Tensor, tensors: Sequence[Tensor]) -> tuple[HeldTensor, ...]:
    """All of them, one after the other, if that is what the flat tensor consists of."""
    if given.ndim != 1 or not given.requires_grad or given.numel() != sum(t.numel() for t in tensors):
        return ()
    if any(t.dtype != given.dtype or t.device != given.device for t in tensors):
        return ()
    if not tensors or not torch.equal(torch.cat([t.detach().reshape(-1) for t in tensors]), given.detach()):
        return ()
    starts = itertools.accumulate((t.numel() for t in tensors), initial=0)
    return tuple(HeldTensor(tensor, start) for tensor, start in zip(tensors, starts))


def tensors_held(value: object) -> dict[int, Tensor]:
    """The parameters and tensors that a value brings along, by id."""
    return _gathered(value, set())


def modules_held(value: object) -> list[nn.Module]:
    """The nn.Modules that a callable brings along: bound, in a closure, a partial, or among the globals that it reads."""
    found: dict[int, nn.Module] = {}
    seen: set[int] = set()
    waiting = [value]
    while waiting:
        part = waiting.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        if isinstance(part, nn.Module):
            found[id(part)] = part
        else:
            waiting += _brought(part)
    return list(found.values())


def holding(value: Any, twins: Mapping[int, Tensor]) -> Any:
    """The value with these tensors in place of those it holds; itself where it holds none of them.

    >>> weight = torch.ones(2)
    >>> holding(lambda x: x * weight, {id(weight): torch.zeros(2)})(3)
    tensor([0., 0.])
    """
    return _Copying(twins).copied(value)


def _gathered(value: object, seen: set[int]) -> dict[int, Tensor]:
    if isinstance(value, Tensor):
        return {id(value): value}
    if id(value) in seen:  # functions that call each other
        return {}
    seen.add(id(value))
    if isinstance(value, nn.Module):
        return {id(p): p for p in value.parameters()}
    return {key: tensor for part in _brought(value) for key, tensor in _gathered(part, seen).items()}


def _brought(value: object) -> Iterable[object]:
    """What a callable brings along besides its code."""
    if isinstance(value, types.MethodType):
        return (value.__self__,)
    if isinstance(value, functools.partial):
        return (value.func, *value.args, *value.keywords.values())
    if isinstance(value, types.FunctionType):
        return (*_closed_over(value).values(), *_globals_of(value).values())
    return ()


class _Copying:
    """Copies of holders. Functions that call each other, and those of one module, stay together in their copies."""

    def __init__(self, twins: Mapping[int, Tensor]) -> None:
        self.twins = twins
        self.functions: dict[int, types.FunctionType] = {}
        self.globals: dict[int, dict[str, Any]] = {}

    def copied(self, value: Any) -> Any:
        if isinstance(value, Tensor):
            return self.twins.get(id(value), value)
        if self._keeps(value):
            return value
        if isinstance(value, types.FunctionType):
            return self.functions[id(value)] if id(value) in self.functions else self._function(value)
        if isinstance(value, functools.partial):
            given = [self.copied(part) for part in value.args]
            named = {key: self.copied(part) for key, part in value.keywords.items()}
            return functools.partial(self.copied(value.func), *given, **named)
        try:
            return copy.deepcopy(value, dict(self.twins))
        except Exception:  # it cannot be copied (an open file, a lock): then it keeps what it holds
            return value

    def _keeps(self, value: Any) -> bool:
        return tensors_held(value).keys().isdisjoint(self.twins)

    def _function(self, function: types.FunctionType) -> types.FunctionType:
        closed, read = _closed_over(function), _globals_of(function)
        changed = {name: value for name, value in read.items() if not self._keeps(value)}
        scope = function.__globals__
        if changed:
            scope = self.globals.setdefault(id(scope), dict(scope))
        names = function.__code__.co_freevars
        cells = tuple(types.CellType() if n in closed else c for n, c in zip(names, function.__closure__ or ()))
        made = types.FunctionType(function.__code__, scope, function.__name__, function.__defaults__, cells)
        made.__kwdefaults__ = function.__kwdefaults__
        self.functions[id(function)] = made  # before its parts, which may lead back to it
        for name, cell in zip(names, cells):
            if name in closed:
                cell.cell_contents = self.copied(closed[name])
        scope.update({name: self.copied(value) for name, value in changed.items()})
        return made


def _closed_over(function: types.FunctionType) -> dict[str, Any]:
    found = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
        try:
            found[name] = cell.cell_contents
        except ValueError:  # not bound yet
            continue
    return found


def _globals_of(function: types.FunctionType) -> dict[str, Any]:
    """The globals it reads, but of the functions among them only those of its own module: others do not name its tensors."""
    scope = function.__globals__
    found = {name: scope[name] for name in _names_read(function.__code__) if name in scope}
    return {
        name: value
        for name, value in found.items()
        if not isinstance(value, types.FunctionType) or value.__globals__ is scope
    }


@functools.lru_cache(maxsize=1024)
def _names_read(code: types.CodeType) -> tuple[str, ...]:
    """The names that a function, and what is defined inside it, looks up in its module; attributes are not among them."""
    own = [i.argval for i in dis.get_instructions(code) if i.opname == "LOAD_GLOBAL"]
    inner = [name for part in code.co_consts if isinstance(part, types.CodeType) for name in _names_read(part)]
    return tuple(dict.fromkeys([*own, *inner]))
