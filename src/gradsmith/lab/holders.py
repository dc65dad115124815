"""Arguments that hold others: `Checkpoint.apply(layer, x, *layer.parameters())`.

Such a Function counts on the parameters it is given being those of the layer. Every run works on copies, so the holder
(a module, a bound method, a closure, a partial) is copied with them, and holds the copies.
"""

from __future__ import annotations

import copy
import functools
import types
from collections.abc import Callable, Mapping
from typing import Any

from torch import Tensor, nn


def tensors_held(value: object) -> set[int]:
    """The ids of the parameters and tensors that a value brings along."""
    if isinstance(value, nn.Module):
        return {id(p) for p in value.parameters()}
    if isinstance(value, types.MethodType):
        return tensors_held(value.__self__)
    if isinstance(value, functools.partial):
        return tensors_held(value.func).union(*map(_in_part, (*value.args, *value.keywords.values())))
    if isinstance(value, types.FunctionType):
        return set().union(*map(_in_part, _closed_over(value).values()))
    return set()


def holding(value: Any, twins: Mapping[int, Tensor]) -> Any:
    """The value with these tensors in place of those it holds; itself where it holds none of them."""
    if tensors_held(value).isdisjoint(twins):
        return value
    if isinstance(value, types.FunctionType):
        return _rebuilt(value, twins)
    if isinstance(value, functools.partial):
        given = [_part(part, twins) for part in value.args]
        named = {key: _part(part, twins) for key, part in value.keywords.items()}
        return functools.partial(holding(value.func, twins), *given, **named)
    try:
        return copy.deepcopy(value, dict(twins))
    except Exception:  # it cannot be copied (an open file, a lock): then it keeps what it holds
        return value


def _rebuilt(function: types.FunctionType, twins: Mapping[int, Tensor]) -> Callable[..., Any]:
    closed = _closed_over(function)
    cells = tuple(
        types.CellType(_part(closed[name], twins)) if name in closed else cell
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ())
    )
    made = types.FunctionType(function.__code__, function.__globals__, function.__name__, function.__defaults__, cells)
    made.__kwdefaults__ = function.__kwdefaults__
    return made


def _closed_over(function: types.FunctionType) -> dict[str, Any]:
    found = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
        try:
            found[name] = cell.cell_contents
        except ValueError:  # not bound yet
            continue
    return found


def _in_part(value: object) -> set[int]:
    return {id(value)} if isinstance(value, Tensor) else tensors_held(value)


def _part(value: Any, twins: Mapping[int, Tensor]) -> Any:
    return twins.get(id(value), value) if isinstance(value, Tensor) else holding(value, twins)
