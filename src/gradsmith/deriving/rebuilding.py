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

    def scope_of(old: dict[str, Any]) -> dict[str, Any]:
        if id(old) in scopes:
            return scopes[id(old)]
        scopes[id(old)] = new = dict(old)
        new |= {"int": WholeNumbers, "float": RealNumbers, BEGIN: loops}
        new |= {name: getattr(looping, name) for name in ("range", "reversed", "enumerate", "zip")}
        for name, value in old.items():
            if value is math or (getattr(value, "__name__", "") == "numpy" and isinstance(value, types.ModuleType)):
                new[name] = Mathematics(graph, value)
            elif getattr(value, "__module__", None) == "math" and callable(value):
                new[name] = getattr(Mathematics(graph, math), value.__name__)
            elif isinstance(value, types.FunctionType) and _is_users(value):
                new[name] = again(value)
        return new

    def again(old: types.FunctionType) -> types.FunctionType:
        scope = scope_of(old.__globals__)
        ready = made_ready(old, scope)
        if ready is not None:
            return ready
        made = types.FunctionType(old.__code__, scope, old.__name__, old.__defaults__, old.__closure__)
        made.__kwdefaults__ = old.__kwdefaults__
        return made

    for cell in function.__closure__ or ():
        if isinstance(cell.cell_contents, Tensor):
            raise Refused("forward closes over a tensor.", "Make it an argument: as it is, it gets no gradient.")
    return again(function)


def _is_users(function: types.FunctionType) -> bool:
    return str(function.__module__).split(".")[0] not in ("torch", "numpy", "math", "typing", "functools", "einops")
