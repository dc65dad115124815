"""Arguments that hold others: `Checkpoint.apply(layer, x, *layer.parameters())`, or all of them in one flat tensor.

Such a Function counts on the parameters it is given being those of the layer. Every run works on copies, so the holder
(a module, a bound method, a closure, a partial) is copied with them, and holds the copies.
"""

from __future__ import annotations

import copy
import functools
import itertools
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn


class Held(NamedTuple):
    """A tensor that an argument holds, and that is given once more: as it is, or flat, from element `start` on."""

    tensor: Tensor
    start: int | None = None

    def twin(self, given: Tensor) -> Tensor:
        """What stands for it in what is given."""
        if self.start is None:
            return given
        return given[self.start : self.start + self.tensor.numel()].view(self.tensor.shape)


def held_in(given: Tensor, holders: Sequence[object]) -> tuple[Held, ...]:
    """The tensors of the holders that are given in this one, too."""
    held = [list(tensors_held(holder).values()) for holder in holders]
    if any(tensor is given for tensors in held for tensor in tensors):
        return (Held(given),)
    return next((found for tensors in held if (found := _in_a_row(given, tensors))), ())


def _in_a_row(given: Tensor, tensors: Sequence[Tensor]) -> tuple[Held, ...]:
    """All of them, one after the other, if that is what the flat tensor consists of."""
    if given.ndim != 1 or not given.requires_grad or given.numel() != sum(t.numel() for t in tensors):
        return ()
    if any(t.dtype != given.dtype or t.device != given.device for t in tensors):
        return ()
    if not tensors or not torch.equal(torch.cat([t.detach().reshape(-1) for t in tensors]), given.detach()):
        return ()
    starts = itertools.accumulate((t.numel() for t in tensors), initial=0)
    return tuple(Held(tensor, start) for tensor, start in zip(tensors, starts))


def tensors_held(value: object) -> dict[int, Tensor]:
    """The parameters and tensors that a value brings along, by id."""
    if isinstance(value, nn.Module):
        return {id(p): p for p in value.parameters()}
    if isinstance(value, types.MethodType):
        return tensors_held(value.__self__)
    if isinstance(value, functools.partial):
        return _in_parts((value.func, *value.args, *value.keywords.values()))
    if isinstance(value, types.FunctionType):
        return _in_parts(_closed_over(value).values())
    return {}


def holding(value: Any, twins: Mapping[int, Tensor]) -> Any:
    """The value with these tensors in place of those it holds; itself where it holds none of them."""
    if tensors_held(value).keys().isdisjoint(twins):
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


def _in_parts(values: Iterable[object]) -> dict[int, Tensor]:
    found: dict[int, Tensor] = {}
    for value in values:
        found |= {id(value): value} if isinstance(value, Tensor) else tensors_held(value)
    return found


def _part(value: Any, twins: Mapping[int, Tensor]) -> Any:
    return twins.get(id(value), value) if isinstance(value, Tensor) else holding(value, twins)
