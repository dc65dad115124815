"""A text after edits, parsed again: what a changed class or function is, before anybody writes it to a file."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from gradsmith.findings import Edit
from gradsmith.source.edits import apply


def parsed_after(text: str, edits: Iterable[Edit]) -> ast.Module | None:
    """The syntax of the changed text; None where it is no longer Python.

    >>> parsed_after("a = b", [Edit(1, 4, 1, 5, "(")]) is None
    True
    """
    try:
        return ast.parse(apply(text, edits))
    except (SyntaxError, ValueError):
        return None


def statements(written: str) -> list[ast.stmt]:
    """The syntax of lines that we write ourselves, to be set into the user's.

    >>> [type(s).__name__ for s in statements("a = b; f(a)")]
    ['Assign', 'Expr']
    """
    return ast.parse(written).body


def class_at(tree: ast.Module, like: ast.ClassDef, moved: int = 0) -> ast.ClassDef | None:
    """The class of the same name that begins where `like` does, or so many lines below."""
    for node in ast.walk(tree):
        here = (getattr(node, "lineno", 0), getattr(node, "col_offset", 0)) == (like.lineno + moved, like.col_offset)
        if here and isinstance(node, ast.ClassDef) and node.name == like.name:
            return node
    return None


def function_at(tree: ast.Module, line: int) -> ast.FunctionDef | None:
    """The function whose `def` stands in this line, without its decorators."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.lineno == line:
            node.decorator_list = []
            return node
    return None


def alike(one: ast.AST, other: ast.AST) -> bool:
    """Do two trees print as the same code?"""
    return ast.unparse(one) == ast.unparse(other)


def names_in(expression: str) -> set[str]:
    """The names that an expression reads.

    >>> sorted(names_in("torch.sin(x) * y"))
    ['torch', 'x', 'y']
    """
    return {n.id for n in ast.walk(ast.parse(expression, mode="eval")) if isinstance(n, ast.Name)}
