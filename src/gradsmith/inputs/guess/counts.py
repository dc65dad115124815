"""How many values `*args` stands for, and which other inputs count them."""

from __future__ import annotations

import ast
from collections.abc import Collection


def counts(body: ast.AST, starred: str) -> list[int]:
    """`a, b = args`, `args[1]`: how many values the body takes for granted; one more where it asks how many there are.

    >>> counts(ast.parse("a, b = args"), "args"), counts(ast.parse("y = xs[0]; n = len(xs)"), "xs")
    ([2], [2, 1])
    """
    found: list[int] = []
    reached, counted = 0, False
    for node in ast.walk(body):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple):
            if _is(node.value, starred) and not any(isinstance(t, ast.Starred) for t in node.targets[0].elts):
                found.append(len(node.targets[0].elts))
        elif isinstance(node, ast.Subscript) and _is(node.value, starred):
            index = node.slice.value if isinstance(node.slice, ast.Constant) else None
            reached = max(reached, index + 1) if isinstance(index, int) else reached
        elif isinstance(node, ast.Call) and _is(node.func, "len"):
            counted |= any(_is(arg, starred) for arg in node.args)
    more = [reached + 1] if counted else []
    return [*found, *more, reached] if reached else found


def counts_some(body: ast.AST, name: str, starred: Collection[str]) -> bool:
    """`args[:n]`, `split(args, [n, m])`: whether `name` says how many of the starred values belong together.

    >>> counts_some(ast.parse("xs, ys = split(args, [n, m])"), "m", {"args"})
    True
    """
    for node in ast.walk(body):
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
            read = [n for bound in (node.slice.lower, node.slice.upper) if bound is not None for n in ast.walk(bound)]
            if any(_is(node.value, s) for s in starred) and any(_is(n, name) for n in read):
                return True
        elif isinstance(node, ast.Call) and any(_is(arg, s) for arg in node.args for s in starred):
            for arg in node.args:
                if isinstance(arg, (ast.List, ast.Tuple)) and any(_is(e, name) for e in arg.elts):
                    return True
    return False


def _is(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name
