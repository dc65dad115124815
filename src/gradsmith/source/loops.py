"""Loops: which they are, what one iteration hands to the next, what stays the same in all of them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradsmith.source.layer import Loop, read_loop
from gradsmith.source.walk import nodes_under, once

if TYPE_CHECKING:
    from gradsmith.source.method import Method


def loops_of(method: Method) -> list[Loop]:
    """Every loop statement of a body, outer before inner."""
    return [read_loop(n, method) for n in method.nodes if isinstance(n, (ast.For, ast.While))]


def body_nodes(loop: Loop) -> Iterator[ast.AST]:
    """Every node of the loop's body."""
    return iter(loop.nodes)


@once
def bound_names(loop: Loop) -> frozenset[str]:
    """Names that get a value in the body or in the loop's header."""
    names = {n.id for n in body_nodes(loop) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    if isinstance(loop.node, ast.For):
        names |= {n.id for n in nodes_under(loop.node.target) if isinstance(n, ast.Name)}
    return frozenset(names)


@once
def carried(loop: Loop) -> frozenset[str]:
    """Names that one iteration leaves for the next: `h` in `h = f(h, x)`; also `out` where `out[i - 1]` is read."""
    inside = {id(n) for n in body_nodes(loop)}
    bound = bound_names(loop)
    names = set()
    for node in body_nodes(loop):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in bound:
            bindings = loop.method.definitions(node)
            here = [b for b in bindings if id(b.node) in inside]
            if here and len(here) != len(bindings):
                names.add(node.id)
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            names.add(node.target.id)
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load) and isinstance(node.value, ast.Name):
            indices = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            if any(isinstance(i, ast.BinOp) and _mentions(i, loop.index) for i in indices) and _is_written(
                loop, node.value.id
            ):
                names.add(node.value.id)
    return frozenset(names)


def _mentions(node: ast.AST, name: str | None) -> bool:
    return name is not None and any(isinstance(n, ast.Name) and n.id == name for n in nodes_under(node))


def _is_written(loop: Loop, name: str) -> bool:
    """`name[...] = ...` or `name.append(...)` in the body."""
    return any(
        isinstance(n.value, ast.Name) and n.value.id == name
        for n in body_nodes(loop)
        if (isinstance(n, ast.Subscript) and isinstance(n.ctx, ast.Store))
        or (isinstance(n, ast.Attribute) and n.attr == "append")
    )


def depends_on(loop: Loop, node: ast.expr, names: frozenset[str]) -> bool:
    """Does a value in the body come from one of these names, directly or through other names of the body?"""
    seen: set[str] = set()
    waiting: list[ast.AST] = [node]
    inside = {id(n) for n in body_nodes(loop)}
    while waiting:
        for name in (n for n in nodes_under(waiting.pop()) if isinstance(n, ast.Name)):
            if name.id in names:
                return True
            if name.id in seen or not isinstance(name.ctx, ast.Load):
                continue
            seen.add(name.id)
            waiting += [b.value for b in loop.method.definitions(name) if b.value is not None and id(b.node) in inside]
    return False
