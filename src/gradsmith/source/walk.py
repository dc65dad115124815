"""Going through syntax trees quickly, and asking each question about a piece of one only once."""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable
from typing import TypeVar
from weakref import WeakKeyDictionary

K = TypeVar("K")
V = TypeVar("V")


def nodes_under(root: ast.AST) -> list[ast.AST]:
    """Every node from `root` on, outer before inner, in the order of `ast.walk` but in a third of its time.

    Load, Store and Del are left out: they are shared by all names, and nobody looks for them.

    >>> [type(node).__name__ for node in nodes_under(ast.parse("f(x)"))]
    ['Module', 'Expr', 'Call', 'Name', 'Name']
    """
    found = [root]
    for node in found:
        for value in vars(node).values():
            if value.__class__ is list:
                found += [item for item in value if isinstance(item, ast.AST)]
            elif isinstance(value, ast.AST) and not isinstance(value, ast.expr_context):
                found.append(value)
    return found


def children(node: ast.AST) -> list[ast.AST]:
    """What stands directly under a node, in order; half the time of `ast.iter_child_nodes`."""
    found: list[ast.AST] = []
    for value in vars(node).values():
        if value.__class__ is list:
            found += [item for item in value if isinstance(item, ast.AST)]
        elif isinstance(value, ast.AST) and not isinstance(value, ast.expr_context):
            found.append(value)
    return found


def once(question: Callable[[K], V]) -> Callable[[K], V]:
    """Remember the answer for as long as what was asked about lives."""
    answers: WeakKeyDictionary[K, V] = WeakKeyDictionary()

    @functools.wraps(question)
    def answer(about: K) -> V:
        if about not in answers:
            answers[about] = question(about)
        return answers[about]

    return answer
