"""Moves from JSON: the inverse of `move.as_json`, for every class of move that there is."""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, get_type_hints

from gradsmith.lab.explore import moves
from gradsmith.lab.explore.move import Move


def from_json(data: Mapping[str, Any]) -> Move:
    """The move that was stored; raises (KeyError, TypeError) on what is no move of this version."""
    made = _made(_known()[data["move"]], data)
    assert isinstance(made, Move)
    return made


@functools.cache
def _known() -> dict[str, type]:
    """Every class of move in the package `moves`, by its name."""
    for module in pkgutil.iter_modules(moves.__path__, f"{moves.__name__}."):
        importlib.import_module(module.name)
    return {cls.__name__: cls for cls in _below(Move)}


def _below(cls: type) -> Iterator[type]:
    children: list[type] = cls.__subclasses__()
    for child in children:
        yield child
        yield from _below(child)


def _made(cls: type, data: Mapping[str, Any]) -> Any:
    hints = get_type_hints(cls)
    return cls(**{f.name: _value(hints[f.name], data[f.name]) for f in fields(cls)})


def _value(hint: Any, value: Any) -> Any:
    """JSON knows neither tuples nor dataclasses."""
    if isinstance(value, Mapping):
        return _made(hint, value) if is_dataclass(hint) and isinstance(hint, type) else value
    return tuple(_value(None, part) for part in value) if isinstance(value, list) else value
