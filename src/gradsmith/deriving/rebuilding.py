"""The user's function with `math`, `int`, `range` and their like exchanged for ones that remember sizes; helpers likewise."""

from __future__ import annotations

import math
import types
from typing import Any

from torch import Tensor

from gradsmith.deriving.graph import Graph
from gradsmith.deriving.loops.source import BEGIN, made_ready
from gradsmith.deriving.loops.turns import Looping
from gradsmith.deriving.refusal import Refused
from gradsmith.deriving.scalars import Mathematics, RealNumbers, WholeNumbers


def rebuilt_for(function: Any, graph: Graph, loops: Any) -> types.FunctionType:
    """The function as it is read: in scopes of its own, with its loops made ready."""
    looping = Looping(graph)
    scopes: dict[int, dict[str, Any]] = {}
    rebuilt: dict[types.FunctionType, types.FunctionType] = {}

    def scope_of(old: dict[str, Any]) -> dict[str, Any]:
        if id(old) in scopes:
            return scopes[id(old)]
        own = {"int": WholeNumbers, "float": RealNumbers}
        own |= {name: getattr(looping, name) for name in ("range", "len", "reversed", "enumerate", "zip")}
        scopes[id(old)] = new = {**own, **old, BEGIN: loops}
        for name, value in old.items():
            if value is math or (getattr(value, "__name__", "") == "numpy" and isinstance(value, types.ModuleType)):
                new[name] = Mathematics(graph, value)
            elif getattr(value, "__module__", None) == "math" and callable(value):
                new[name] = getattr(Mathematics(graph, math), value.__name__)
        return new

    def again(old: types.FunctionType) -> types.FunctionType:
        if old in rebuilt:
            return rebuilt[old]
        scope = scope_of(old.__globals__)
        made = made_ready(old, scope)
        if made is None:
            made = types.FunctionType(old.__code__, scope, old.__name__, old.__defaults__, old.__closure__)
            made.__kwdefaults__ = old.__kwdefaults__
        rebuilt[old] = made
        for name in _names(old.__code__):  # only what it calls: a module may import hundreds of functions
            value = old.__globals__.get(name)
            if isinstance(value, types.FunctionType) and _is_users(value):
                scope[name] = again(value)
        return made

    for cell in function.__closure__ or ():
        if isinstance(cell.cell_contents, Tensor):
            raise Refused("forward closes over a tensor.", "Make it an argument: as it is, it gets no gradient.")
    return again(function)


def _names(code: types.CodeType) -> set[str]:
    """The names that a function, and what is defined inside it, looks up."""
    inner = [c for c in code.co_consts if isinstance(c, types.CodeType)]
    return {*code.co_names, *(name for c in inner for name in _names(c))}


def _is_users(function: types.FunctionType) -> bool:
    return str(function.__module__).split(".")[0] not in ("torch", "numpy", "math", "typing", "functools", "einops")
