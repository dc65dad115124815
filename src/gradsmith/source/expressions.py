"""The expression behind an operation: what its author wrote in that line."""

from __future__ import annotations

import ast
import functools

from gradsmith.source.file import FileModel
from gradsmith.source.loaded import file_named
from gradsmith.source.walk import once

_COMPARED: dict[str, type[ast.cmpop]] = {
    "gt": ast.Gt,
    "ge": ast.GtE,
    "lt": ast.Lt,
    "le": ast.LtE,
    "eq": ast.Eq,
    "ne": ast.NotEq,
}
# What torch's operators are called by those who write them.
_WRITTEN = {
    "clamp_min": ("clamp_min", "clamp", "clip", "relu", "hinge_embedding_loss", "margin_ranking_loss"),
    "clamp_max": ("clamp_max", "clamp", "clip"),
    "clamp": ("clamp", "clip"),
    "hardtanh": ("hardtanh", "relu6"),
    "elu": ("elu", "selu", "celu"),
    "sgn": ("sgn", "sign"),
    "maximum": ("maximum", "max"),
    "minimum": ("minimum", "min"),
    "_prelu_kernel": ("prelu",),
}
_MOST = 60  # a longer expression is not quoted


def written(path: str, line: int, operation: str) -> str:
    """The only expression of a line that this operation of torch can stand for; empty where there is none, or several.

    >>> written("nowhere.py", 3, "abs")
    ''
    """
    file = file_named(path)
    return "" if file is None else _written(file, line, operation)


@functools.lru_cache(maxsize=1024)
def _written(file: FileModel, line: int, operation: str) -> str:
    names = _WRITTEN.get(operation, (operation,))
    found = [node for node in _at_line(file, line) if _is(node, operation, names)]
    text = ast.unparse(found[0]) if len({ast.unparse(node) for node in found}) == 1 else ""
    return text if len(text) <= _MOST else ""


def _is(node: ast.expr, operation: str, names: tuple[str, ...]) -> bool:
    if isinstance(node, ast.Compare):
        return len(node.ops) == 1 and type(node.ops[0]) is _COMPARED.get(operation)
    if not isinstance(node, ast.Call):
        return False
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    return name.rstrip("_") in names


def _at_line(file: FileModel, line: int) -> list[ast.expr]:
    return [node for node in _expressions(file) if node.lineno <= line <= (node.end_lineno or node.lineno)]


@once
def _expressions(file: FileModel) -> list[ast.expr]:
    return [node for node in ast.walk(file.tree) if isinstance(node, (ast.Call, ast.Compare))]


def names_called(expression: str) -> frozenset[str]:
    """The names that an expression calls.

    >>> sorted(names_called("x * gate(relu(y))"))
    ['gate', 'relu']
    """
    calls = (node for node in ast.walk(ast.parse(expression.strip(), mode="eval")) if isinstance(node, ast.Call))
    return frozenset(call.func.id for call in calls if isinstance(call.func, ast.Name))
