"""What is written down: constants, containers of them, and the names that stand for either."""

from __future__ import annotations

import ast
import math

from gradsmith.source.behind import behind
from gradsmith.source.method import Method

Scalar = bool | int | float | str | None
_INFINITE = frozenset(("math.inf", "torch.inf", "numpy.inf"))


def literals(method: Method, node: ast.expr | None) -> list[Scalar]:
    """The one value of a literal; none for anything else."""
    node = behind(method, node) if isinstance(node, (ast.Name, ast.Attribute)) else node
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return [-v for v in literals(method, node.operand) if isinstance(v, (int, float))]
    if isinstance(node, ast.Constant):
        return [node.value] if node.value is None or isinstance(node.value, (bool, int, float, str)) else []
    called = node.func if isinstance(node, ast.Call) and len(node.args) == 1 else None
    if isinstance(node, ast.Call) and isinstance(called, ast.Name) and called.id == "float":
        written = node.args[0].value if isinstance(node.args[0], ast.Constant) else None
        return [math.inf] if isinstance(written, str) and written.lower() in ("inf", "infinity") else []
    return [math.inf] if node is not None and method.dotted(node) in _INFINITE else []


def keys(method: Method, node: ast.expr) -> list[Scalar]:
    """What is in a container that is written down: the keys of a dict."""
    node = behind(method, node)
    if isinstance(node, ast.Dict):
        return [v for key in node.keys for v in literals(method, key)]
    if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
        return [v for part in node.elts for v in literals(method, part)]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and len(node.args) == 1:
        return keys(method, node.args[0])  # frozenset((...))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "keys":
        return keys(method, node.func.value)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "dict":
        return [k.arg for k in node.keywords if k.arg is not None]
    return []


def indices(method: Method, node: ast.expr) -> list[Scalar]:
    node = behind(method, node)
    return [*range(len(node.elts))] if isinstance(node, (ast.Tuple, ast.List)) else keys(method, node)


def patterns(method: Method, pattern: ast.pattern) -> list[Scalar]:
    if isinstance(pattern, ast.MatchValue):
        return literals(method, pattern.value)
    if isinstance(pattern, ast.MatchSingleton):
        return [pattern.value]
    if isinstance(pattern, ast.MatchOr):
        return [v for part in pattern.patterns for v in patterns(method, part)]
    return patterns(method, pattern.pattern) if isinstance(pattern, ast.MatchAs) and pattern.pattern else []
