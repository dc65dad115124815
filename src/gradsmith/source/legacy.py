"""Functions in the style of PyTorch before 1.5: built with values, called as an object, their state on self."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gradsmith.source.model import FunctionModel


def kept_on_self(function: FunctionModel) -> list[str]:
    """The attributes that `__init__` sets and that a forward or backward on an object reads; nothing for today's style."""
    if not isinstance(function.node, ast.ClassDef):
        return []
    init = next((s for s in function.node.body if isinstance(s, ast.FunctionDef) and s.name == "__init__"), None)
    methods = [m for m in (function.forward, function.backward) if m is not None and m.binder == "instance"]
    if init is None or not methods:
        return []
    stored = _attributes(init, ast.Store)
    read = {name for method in methods for name in _attributes(method.node, ast.Load)}
    return [name for name in stored if name in read]


def _attributes(node: ast.FunctionDef | ast.AsyncFunctionDef, kind: type[ast.expr_context]) -> list[str]:
    """`x` of every `self.x` that is set or read, self being the first parameter."""
    if not node.args.args:
        return []
    own = node.args.args[0].arg
    found = (n for n in ast.walk(node) if isinstance(n, ast.Attribute) and isinstance(n.ctx, kind))
    return list(dict.fromkeys(n.attr for n in found if isinstance(n.value, ast.Name) and n.value.id == own))
