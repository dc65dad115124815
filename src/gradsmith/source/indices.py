"""What a method uses as an index: integers, and without a derivative, whatever else is known of it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradsmith.source import knowledge as know
from gradsmith.source.walk import once

if TYPE_CHECKING:
    from gradsmith.source.flow import Binding
    from gradsmith.source.method import Method


def is_index(method: Method, node: ast.expr) -> bool:
    """Whether the same value is used as an index somewhere in the method: `F.embedding(ids, weight)` says so of `ids`."""
    if not isinstance(node, ast.Name):
        return False
    bindings = method.definitions(node)
    return bool(bindings) and _used(method).issuperset(bindings)


@once
def _used(method: Method) -> frozenset[Binding]:
    names = (given for call in method.of(ast.Call) for given in _indices(method, call) if isinstance(given, ast.Name))
    return frozenset(binding for name in names for binding in method.definitions(name))


def _indices(method: Method, call: ast.Call) -> Iterator[ast.expr]:
    op = (method.op(call) or "").removesuffix("_")
    if op not in know.INDEX_PLACES:
        return
    of_function, keyword = know.INDEX_PLACES[op]
    place = of_function if know.bare_op(method.dotted(call.func)) is not None else of_function - 1
    yield from call.args[place : place + 1] if place >= 0 else ()
    yield from (k.value for k in call.keywords if k.arg == keyword)
