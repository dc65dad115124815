"""What stands behind an expression: the value of a name, and the body of a function that is called.

Every rule that follows a name back asks here, so that all of them agree on what is known.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gradsmith.source.method import Method


def behind(method: Method, node: ast.expr) -> ast.expr:
    """What a name stands for: in this method, at the top of the file, or in the body of a class there."""
    node = method.resolve(node)
    if isinstance(node, ast.Name) and method.is_free(node):
        return method.file.value_of(node.id) or node
    if not (isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)):
        return node
    around = method.file.parents.get(method.node)
    holder = method.file.block(node.value.id) if method.is_free(node.value) else around
    for statement in holder.body if isinstance(holder, ast.ClassDef) else ():
        targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
        if any(isinstance(t, ast.Name) and t.id == node.attr for t in targets):
            return getattr(statement, "value", None) or node
    return node


def body_called(method: Method, func: ast.expr, owner: ast.AST | None = None) -> ast.FunctionDef | None:
    """The function that is called, where it stands in this file: nested, at the top, or beside the method in its class.

    `owner` is the class whose `cls` and `self` the method has, where that is known.
    """
    if isinstance(func, ast.Name):
        local = method.definitions(func)
        if local:
            found = local[0].node if len(local) == 1 and local[0].how == "def" else None
            return found if isinstance(found, ast.FunctionDef) else None
        return None if func.id in method.file.imports.names else method.file.function_named(func.id)
    around = owner or method.file.parents.get(method.node)
    if not (isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name) and isinstance(around, ast.ClassDef)):
        return None
    names = (around.name, "cls", "self") if owner is not None else (around.name,)
    own = around.body if func.value.id in names else ()
    found = next((n for n in own if isinstance(n, ast.FunctionDef) and n.name == func.attr), None)
    static = found is not None and any(isinstance(d, ast.Name) and d.id == "staticmethod" for d in found.decorator_list)
    return found if static or owner is not None else None
