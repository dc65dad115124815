"""Which statements of a file a class needs."""

from __future__ import annotations

import ast
import symtable
from collections.abc import Iterable, Iterator
from pathlib import Path

from gradsmith.source import notebook


def tree_of(path: Path) -> ast.Module:
    """The syntax of a file, or of the code cells of a notebook; SyntaxError or ValueError where it has none."""
    data = path.read_bytes()
    return ast.parse(notebook.read(data).text if path.suffix == notebook.ENDING else data, str(path))


def needed(tree: ast.Module, wanted: Iterable[str]) -> list[ast.stmt]:
    """The top-level statements that bind these names and, transitively, what they use; in the order of the source.

    >>> tree = ast.parse("import os\\nimport math\\nscale = math.pi\\nclass A:\\n    size = scale")
    >>> [statement.lineno for statement in needed(tree, ["A"])]
    [2, 3, 4]
    """
    binders: dict[str, list[ast.stmt]] = {}
    for statement in tree.body:
        for bound in binds(statement):
            binders.setdefault(bound, []).append(statement)
    kept: set[ast.stmt] = set()
    open_names = [*wanted, "*"]  # what `from x import *` gives, nobody can read
    seen: set[str] = set()
    while open_names:
        each = open_names.pop()
        if each in seen:
            continue
        seen.add(each)
        for statement in binders.get(each, ()):
            if statement not in kept:
                kept.add(statement)
                open_names += uses(statement)
    return [statement for statement in tree.body if statement in kept]


def futures(tree: ast.Module) -> list[ast.ImportFrom]:
    return [s for s in tree.body if isinstance(s, ast.ImportFrom) and s.module == "__future__"]


def binds(statement: ast.stmt) -> set[str]:
    """The names of the module that a statement gives a value."""
    return set(_bound(statement))


def uses(statement: ast.stmt) -> set[str]:
    """The names of the module that a statement reads, when it runs or later; what is local to a function is none of them.

    >>> sorted(uses(ast.parse("def f(x):\\n    y = x * scale\\n    return y").body[0]))
    ['f', 'scale']
    """
    try:
        tables = [symtable.symtable(ast.unparse(statement), "", "exec")]
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # all that could be one
        return {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)}
    found = set(tables[0].get_identifiers())
    while tables:
        inner = tables.pop().get_children()
        found |= {symbol.get_name() for table in inner for symbol in table.get_symbols() if symbol.is_global()}
        tables += inner
    return found


def _bound(node: ast.AST) -> Iterator[str]:
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        yield node.name
        return
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        yield from (alias.asname or alias.name.partition(".")[0] for alias in node.names)
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node.id
    if not isinstance(node, ast.Lambda):
        for child in ast.iter_child_nodes(node):
            yield from _bound(child)


def gradient_asked_for(text: str) -> int | str | None:
    """The number in `ctx.needs_input_grad[0]`; "any" for `any(ctx.needs_input_grad)`; None for all other conditions.

    >>> gradient_asked_for("ctx.needs_input_grad[1]"), gradient_asked_for("any(ctx.needs_input_grad)"), gradient_asked_for("x")
    (1, 'any', None)
    """
    try:
        node = ast.parse(text, mode="eval").body
    except SyntaxError:
        return None
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "any" and len(node.args) == 1:
        return "any" if _is_needs(node.args[0]) else None
    if isinstance(node, ast.Subscript) and _is_needs(node.value):
        try:
            number = ast.literal_eval(node.slice)
        except ValueError:
            return None
        return number if isinstance(number, int) else None
    return None


def _is_needs(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "needs_input_grad"
