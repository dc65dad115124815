"""What autograd tracks in the forward of a module: values that a layer took part in, where gradients are on."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import TYPE_CHECKING

from gradsmith.source import knowledge as know
from gradsmith.source.behind import all_of, made_of
from gradsmith.source.lexicon import is_a

if TYPE_CHECKING:
    from gradsmith.source.file import FileModel
    from gradsmith.source.method import Method


def is_module(file: FileModel, base: ast.expr) -> bool:
    dotted = file.dotted(base) or ""
    return dotted.endswith("Module") or dotted.startswith("torch.nn.")


def parts(method: Method, node: ast.AST) -> list[ast.expr]:
    if isinstance(node, ast.Name):
        return [b.value for b in method.definitions(node) if b.how in ("assign", "augment") and b.value is not None]
    if isinstance(node, ast.BinOp):
        return [node.left, node.right]
    if isinstance(node, ast.UnaryOp):
        return [node.operand]
    if isinstance(node, ast.Tuple):
        return list(node.elts)
    return []


def operands(call: ast.Call) -> list[ast.expr]:
    """What an operation is given: the tensor whose method it is, and what stands in parentheses."""
    given = [a for a in call.args if not isinstance(a, ast.Starred)]
    return [*given, call.func.value] if isinstance(call.func, ast.Attribute) else given


def from_layer(method: Method, node: ast.expr, *, through_detach: bool = True, or_input: bool = False) -> bool:
    """Something of the module's own took part: `self.linear(x)`, `x * self.weight`.

    `through_detach`: also where it was detached since. NumPy takes nothing else; elsewhere somebody wanted a constant.
    `or_input`: an input of forward will do, which may be data that needs no gradient.
    """

    def into(part: ast.AST) -> Iterable[ast.AST | None]:
        cut = not through_detach and isinstance(part, ast.Call) and method.op(part) == "detach"
        return () if cut else all_of(method, part)

    layer = False
    for part in made_of(method, [node], into):
        if isinstance(part, ast.Call):
            func = part.func
            if method.op(part) in know.TO_INTEGER | know.TO_BOOL or (
                isinstance(func, ast.Attribute) and func.attr == "data"
            ):
                return False
            if isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name) and func.value.id == "self":
                layer = True
        elif or_input and isinstance(part, ast.Name) and method.param_of(part) is not None:
            layer = True
    return layer


def is_off(method: Method, node: ast.AST) -> bool:
    """Runs without gradients, or not in training."""
    for parent in method.ancestors(node):
        if isinstance(parent, ast.With) and any(
            "no_grad" in ast.unparse(i) or "inference" in ast.unparse(i) for i in parent.items
        ):
            return True
    tests = [ast.unparse(guard.test) for guard in method.guards(node)]
    return any(is_a(test, role) for test in tests for role in ("gradient control", "no gradient needed"))
