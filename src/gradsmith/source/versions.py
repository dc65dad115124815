"""Branches for old releases of PyTorch: code that no supported release runs.

Only a comparison with `torch.__version__` itself counts, spelled out or behind a name of the same file.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gradsmith.source.file import FileModel

# The oldest release that is supported: a branch that only an older one takes is dead.
OLDEST = (2, 0)
_COMPARISONS: dict[type[ast.cmpop], Callable[[tuple[int, ...], tuple[int, ...]], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


def dead_lines(file: FileModel) -> list[range]:
    """The lines that no supported release of PyTorch reaches."""
    if "__version__" not in file.text or not file.parses:
        return []
    known = {
        target.id: node.value
        for node in ast.walk(file.tree)
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    return list(_dead(file, known))


def _dead(file: FileModel, known: dict[str, ast.expr]) -> Iterator[range]:
    for node in ast.walk(file.tree):
        if isinstance(node, ast.If) and (holds := _holds(file, node.test, known)) is not None:
            block = node.orelse if holds else node.body
            if block:
                yield range(block[0].lineno, (block[-1].end_lineno or block[-1].lineno) + 1)


def _holds(file: FileModel, test: ast.expr, known: dict[str, ast.expr], depth: int = 5) -> bool | None:
    """Whether a test is true, or false, for every supported release; None where that depends, or is about something else."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = _holds(file, test.operand, known, depth)
        return None if inner is None else not inner
    if isinstance(test, ast.Name) and test.id in known and depth:
        return _holds(file, known[test.id], known, depth - 1)
    if not (isinstance(test, ast.Compare) and len(test.ops) == 1):
        return None
    left, right, kind = test.left, test.comparators[0], type(test.ops[0])
    if _is_version(file, left, known) and (bound := _number(right)) is not None:
        return _for_all(kind, bound)
    return None


def _for_all(kind: type[ast.cmpop], bound: tuple[int, ...]) -> bool | None:
    """`version < (1, 8)` is false from 2.0 on, `version >= (1, 8)` true; `version < (2, 4)` depends."""
    if kind not in _COMPARISONS or bound >= OLDEST:
        return None
    return _COMPARISONS[kind](OLDEST, bound)


def _is_version(file: FileModel, node: ast.expr, known: dict[str, ast.expr], depth: int = 5) -> bool:
    for part in ast.walk(node):
        if isinstance(part, ast.Attribute) and file.dotted(part) == "torch.__version__":
            return True
        if isinstance(part, ast.Name) and part.id in known and depth:
            if _is_version(file, known[part.id], known, depth - 1):
                return True
        elif isinstance(part, ast.Name) and file.imports.names.get(part.id) == "torch.__version__":
            return True
    return False


def _number(node: ast.expr) -> tuple[int, ...] | None:
    """`(1, 8)`, `[1, 8]`, `"1.8.0"`, `Version("1.8")`, `1.8`."""
    if isinstance(node, ast.Call) and len(node.args) == 1:
        return _number(node.args[0])
    if isinstance(node, (ast.Tuple, ast.List)):
        parts = [e.value for e in node.elts if isinstance(e, ast.Constant) and isinstance(e.value, int)]
        return tuple(parts) if parts and len(parts) == len(node.elts) else None
    if isinstance(node, ast.Constant) and isinstance(node.value, (str, float)):
        found = re.match(r"\d+(?:\.\d+)*", str(node.value))
        return tuple(int(part) for part in found[0].split(".")) if found else None
    return None
