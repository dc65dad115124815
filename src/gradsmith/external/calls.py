"""One way in which the wrapped function is called: the nesting of its arguments, and those that are not tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from gradsmith.external.errors import ExternalError
from gradsmith.lab.subject.arguments import parameter_names


class _Slot:
    """Where a tensor goes."""

    def __repr__(self) -> str:
        return "tensor"


SLOT = _Slot()
_MOST = 10_000


@dataclass(frozen=True)
class CallSignature:
    """The arguments of a call without the numbers of its tensors."""

    number: int
    spec: pytree.TreeSpec = field(repr=False)
    constants: tuple[Any, ...]
    names: tuple[str, ...]

    def arguments(self, arrays: Sequence[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments as the function gets them, with these arrays for the tensors."""
        remaining = iter(arrays)
        flat = [next(remaining) if value is SLOT else value for value in self.constants]
        args, kwargs = pytree.tree_unflatten(flat, self.spec)
        return args, kwargs


class Calls:
    """The ways in which one function has been called, each with a number that fits into a graph of torch."""

    def __init__(self, fn: Any, name: str) -> None:
        self.name = name
        self.parameters = _parameters(fn)
        self._known: dict[Any, CallSignature] = {}
        self._list: list[CallSignature] = []
        self._plain: dict[int, CallSignature] = {}

    def __getitem__(self, number: int) -> CallSignature:
        return self._list[number]

    def of(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[list[Tensor], CallSignature]:
        """The tensors among the arguments, and the rest as a Call."""
        if not kwargs and all(type(a) is Tensor or isinstance(a, Tensor) for a in args):
            call = self._plain.get(len(args))
            if call is None:
                call = self._plain[len(args)] = self._find(tuple(args), {})[1]
            return list(args), call
        return self._find(tuple(args), dict(kwargs))

    def _find(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[list[Tensor], CallSignature]:
        flat, spec = pytree.tree_flatten((args, kwargs))
        flat = [
            int(v) if isinstance(v, torch.SymInt) else float(v) if isinstance(v, torch.SymFloat) else v for v in flat
        ]
        tensors = [value for value in flat if isinstance(value, Tensor)]
        constants = tuple(SLOT if isinstance(value, Tensor) else value for value in flat)
        key = (spec, tuple(_key(value) for value in constants))
        call = self._known.get(key)
        if call is None:
            if len(self._list) >= _MOST:
                raise ExternalError(
                    f"{self.name} was called with {_MOST} different sets of arguments that are not tensors. Each is kept, because "
                    "a backward pass may need it. Pass what changes from call to call as a tensor."
                )
            call = CallSignature(len(self._list), spec, constants, tuple(self._names(args, kwargs)))
            self._known[key] = call
            self._list.append(call)
        return tensors, call

    def _names(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[str]:
        """What a message calls each tensor: the parameter, and the place inside it."""
        found = []
        for path, value in pytree.tree_flatten_with_path((args, kwargs))[0]:
            if not isinstance(value, Tensor):
                continue
            keys: list[Any] = list(path)
            side, first, *inside = keys
            if side.idx == 0:
                place = first.idx
                name = self.parameters[place] if place < len(self.parameters) else f"argument {place}"
            else:
                name = str(first.key)
            found.append(name + pytree.keystr(tuple(inside)))
        return found


def _parameters(fn: Any) -> list[str]:
    try:
        return list(parameter_names(fn, skip_first=False))
    except (TypeError, ValueError):  # a builtin, or a C function: it has no signature
        return []


def _key(value: Any) -> Any:
    """What tells two constants apart: 1, 1.0 and True are equal, and are not the same argument."""
    if isinstance(value, np.ndarray):
        return ("array", value.shape, value.dtype.str, value.tobytes())
    try:
        hash(value)
    except TypeError:
        return (type(value), id(value))  # kept alive by the Call, so the id stays its own
    return (type(value), value)


def plain(value: Any) -> Any:
    """The same nesting in Python's own containers; torch.compile hands over subclasses of them."""
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if type(value).__name__ == "immutable_list":
        return [plain(v) for v in value]
    if isinstance(value, (tuple, list)) and not hasattr(value, "_fields"):
        return type(value)(plain(v) for v in value)
    return value
