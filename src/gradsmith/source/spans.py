"""Which Python loops a place is in: `for`, `while` and comprehensions of one function, outermost first."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from gradsmith.source.file import FileModel
from gradsmith.source.loaded import file_named
from gradsmith.source.walk import once

Position = tuple[int, int]


@dataclass(frozen=True)
class LoopSpan:
    """A `for`, a `while` or a comprehension: what it runs over, and where its body is."""

    path: str
    line: int
    over: str
    start: Position
    end: Position


@dataclass(frozen=True)
class _Scope:
    start: Position
    end: Position
    loops: tuple[LoopSpan, ...]


def around(path: str, line: int, column: int | None) -> tuple[LoopSpan, ...]:
    """The loops around a place of a file or cell; on Python 3.10, which knows no columns, those of its line."""
    file = file_named(path)
    if file is None:
        return ()
    at = (line, column if column is not None else 10**6)
    inside = [s for s in _scopes(file) if s.start <= at <= s.end or (column is None and s.start[0] <= line <= s.end[0])]
    if not inside:
        return ()
    scope = max(inside, key=lambda s: s.start)
    hits = [
        x for x in scope.loops if (x.start <= at <= x.end if column is not None else x.start[0] <= line <= x.end[0])
    ]
    return tuple(sorted(hits, key=lambda x: x.start))


def headers(path: str) -> frozenset[int]:
    """Lines on which an iteration of some loop begins."""
    file = file_named(path)
    return frozenset(loop.line for scope in _scopes(file) for loop in scope.loops) if file is not None else frozenset()


@once
def _scopes(file: FileModel) -> tuple[_Scope, ...]:
    if not file.parses:  # a notebook cell with magics: operations then have lines but no loops
        return ()
    scopes: list[_Scope] = []

    def visit(owner: ast.AST) -> None:
        loops: list[LoopSpan] = []
        inner: list[ast.AST] = []
        todo = list(ast.iter_child_nodes(owner))
        while todo:
            node = todo.pop()
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
                inner.append(node)
                continue
            if (loop := _loop(file.path, node)) is not None:
                loops.append(loop)
            todo.extend(ast.iter_child_nodes(node))
        last = (getattr(owner, "end_lineno", 10**9) or 10**9, getattr(owner, "end_col_offset", 10**9) or 10**9)
        scopes.append(_Scope((getattr(owner, "lineno", 0), getattr(owner, "col_offset", 0)), last, tuple(loops)))
        for node in inner:
            visit(node)

    visit(file.tree)
    return tuple(scopes)


def _loop(path: str, node: ast.AST) -> LoopSpan | None:
    if isinstance(node, (ast.For, ast.While)):
        over = ast.unparse(node.iter if isinstance(node, ast.For) else node.test)
        first, last = node.body[0], node.body[-1]
        end = (last.end_lineno or last.lineno, last.end_col_offset or 0)
        return LoopSpan(path, node.lineno, over, (first.lineno, first.col_offset), end)
    if isinstance(node, (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)):
        element = node.value if isinstance(node, ast.DictComp) else node.elt
        end = (element.end_lineno or element.lineno, element.end_col_offset or 0)
        over = ast.unparse(node.generators[0].iter)
        return LoopSpan(path, element.lineno, over, (element.lineno, element.col_offset), end)
    return None
