"""Branches for old releases of PyTorch: code that no supported release runs.

Only a comparison with `torch.__version__` itself counts, spelled out or behind a name of the same file.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gradsmith.source.file import FileModel

# The oldest release that is supported: a branch that only an older one takes is dead.
OLDEST = (2, 0)
# What a comparison with it, or with an older one, comes to in every supported release; and what with an older one alone.
_BY_ORDER: dict[type[ast.cmpop], bool] = {ast.Lt: False, ast.GtE: True}
_BEYOND: dict[type[ast.cmpop], bool] = {ast.LtE: False, ast.Gt: True, ast.Eq: False, ast.NotEq: True}


def dead_lines(file: FileModel) -> list[range]:
    """The lines that no supported release of PyTorch reaches."""
    if "__version__" not in file.text or not file.parses:
        return []
    known = dict(part for node in ast.walk(file.tree) if isinstance(node, ast.Assign) for part in _assigned(node))
    return list(_dead(file, known))


def _assigned(node: ast.Assign) -> Iterator[tuple[str, ast.expr]]:
    """Each name and what it stands for: `major, minor = parts` is parts[0] and parts[1]."""
    for target in node.targets:
        if isinstance(target, ast.Name):
            yield target.id, node.value
        elif isinstance(target, (ast.Tuple, ast.List)):
            whole = node.value.elts if isinstance(node.value, (ast.Tuple, ast.List)) else None
            for index, part in enumerate(target.elts):
                if isinstance(part, ast.Name) and (whole is None or len(whole) == len(target.elts)):
                    yield part.id, whole[index] if whole else ast.Subscript(node.value, ast.Constant(index), ast.Load())


def _dead(file: FileModel, known: dict[str, ast.expr]) -> Iterator[range]:
    for node in ast.walk(file.tree):
        for block in _blocks(node):
            for index, statement in enumerate(block):
                if not isinstance(statement, ast.If) or (holds := _holds(file, statement.test, known)) is None:
                    continue
                taken, left = statement.body, statement.orelse
                if not holds:
                    taken, left = left, taken
                if taken and isinstance(taken[-1], (ast.Return, ast.Raise, ast.Continue, ast.Break)):
                    yield from _lines(block[index + 1 :])
                yield from _lines(left)


def _blocks(node: ast.AST) -> Iterator[list[ast.stmt]]:
    """The statements in a statement, one after the other; the body of a lambda is none."""
    return (b for b in (getattr(node, name, None) for name in ("body", "orelse", "finalbody")) if isinstance(b, list))


def _lines(block: list[ast.stmt]) -> Iterator[range]:
    if block:
        yield range(block[0].lineno, (block[-1].end_lineno or block[-1].lineno) + 1)


def _holds(file: FileModel, test: ast.expr, known: dict[str, ast.expr], depth: int = 5) -> bool | None:
    """Whether a test is true, or false, for every supported release; None where that depends, or is about something else."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = _holds(file, test.operand, known, depth)
        return None if inner is None else not inner
    if isinstance(test, ast.BoolOp):
        ends = isinstance(test.op, ast.Or)  # one such operand settles it
        found = {_holds(file, part, known, depth) for part in test.values}
        return ends if ends in found else None if None in found else not ends
    if isinstance(test, ast.Name) and test.id in known and depth:
        return _holds(file, known[test.id], known, depth - 1)
    if isinstance(test, ast.Call) and isinstance(test.func, ast.Attribute) and test.func.attr == "startswith":
        listed = test.args[0].elts if test.args and isinstance(test.args[0], ast.Tuple) else test.args
        beginnings = [part.value if isinstance(part, ast.Constant) else None for part in listed]
        ours = _is_version(file, test.func.value, known)
        return False if ours and beginnings and all(map(_begins_old, beginnings)) else None
    if not (isinstance(test, ast.Compare) and len(test.ops) == 1):
        return None
    left, right, kind = test.left, test.comparators[0], type(test.ops[0])
    if not _is_version(file, left, known):
        return None
    if isinstance(right, ast.Constant) and isinstance(right.value, int):
        return _for_all(kind, (right.value,), OLDEST[:1]) if _is_major(left, known) else None
    return _for_all(kind, bound, OLDEST) if (bound := _number(right)) is not None else None


def _for_all(kind: type[ast.cmpop], bound: tuple[int, ...], oldest: tuple[int, ...]) -> bool | None:
    """`version < (1, 8)` is false from 2.0 on, `version >= (1, 8)` true; `version < (2, 4)` depends."""
    if kind in _BY_ORDER:
        return _BY_ORDER[kind] if bound <= oldest else None
    return _BEYOND.get(kind) if bound < oldest[: len(bound)] else None


def _begins_old(text: object) -> bool:
    """Whether no supported release begins so: `"0."`, `"1.8"`; "1" may be the beginning of 10.0."""
    major, dot, _ = text.partition(".") if isinstance(text, str) else ("", "", "")
    return major.isdecimal() and bool(dot) and (int(major),) < OLDEST[:1]


def _is_major(node: ast.expr, known: dict[str, ast.expr], depth: int = 5) -> bool:
    """The first part of something: `int(parts[0])`."""
    if isinstance(node, ast.Name) and node.id in known and depth:
        return _is_major(known[node.id], known, depth - 1)
    if isinstance(node, ast.Call) and len(node.args) == 1:
        return _is_major(node.args[0], known, depth)
    return isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and node.slice.value == 0


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
