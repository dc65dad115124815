"""What is written into the local names of a method: `dx[i] = v`, `dx.add_(v)`, `parts.append(v)`; through views, too."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradsmith.source import knowledge as know
from gradsmith.source.walk import once

if TYPE_CHECKING:
    from gradsmith.source.method import Method

# Operations after which a tensor is still the same one, or a copy with the same derivative.
SAME = know.VIEWS | know.MAYBE_SAME
_COLLECTS = frozenset(("append", "extend", "insert", "update", "__setitem__"))


@once
def by_name(method: Method) -> dict[str, list[ast.expr]]:
    """The values written into each name where autograd records it. `out=` is left out: autograd refuses it."""
    found: dict[str, list[ast.expr]] = {}
    for node in method.nodes:
        for target, values in _writes(node):
            if not without_graph(method, node):
                for name in _names(method, target):
                    found.setdefault(name, []).extend(values)
    return found


def _writes(node: ast.AST) -> Iterator[tuple[ast.expr, list[ast.expr]]]:
    if isinstance(node, ast.Assign):
        yield from ((t.value, [node.value]) for t in node.targets if isinstance(t, ast.Subscript))
    elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Subscript):
        yield node.target.value, [node.value]
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and _is_write(node.func.attr):
        yield node.func.value, [*node.args, *(k.value for k in node.keywords)]


def _is_write(name: str) -> bool:
    return know.is_inplace_name(name) or name in _COLLECTS


def _names(method: Method, target: ast.expr) -> Iterator[str]:
    """`v` and `dx` for a write into `v`, where `v = dx[1:]`."""
    for _ in range(5):
        behind = root(target)
        if not isinstance(behind, ast.Name):
            return
        yield behind.id
        target = method.resolve(behind)
        if target is behind or (isinstance(target, ast.Call) and method.op(target) not in SAME):
            return


def root(node: ast.expr) -> ast.expr:
    """`dx` of `dx[0].view(-1).T`."""
    while True:
        if isinstance(node, (ast.Attribute, ast.Subscript)):
            node = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in SAME:
            node = node.func.value
        else:
            return node


def without_graph(method: Method, node: ast.AST) -> bool:
    """Under `with torch.no_grad():`."""
    for around in method.ancestors(node):
        for item in around.items if isinstance(around, (ast.With, ast.AsyncWith)) else ():
            call = item.context_expr
            name = method.dotted(call.func if isinstance(call, ast.Call) else call) or ""
            if name.rpartition(".")[2] in ("no_grad", "inference_mode"):
                return True
    return False
