"""What code demands of its inputs before it goes on: the comparisons of an `assert`, or of the `if` that leads to a `raise`,
and as many values as it unpacks.

An assertion without a message says nothing when it fails; its source says which two values should have been equal.
Never imports torch.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from gradsmith.source.file import FileModel
from gradsmith.source.loaded import file_named
from gradsmith.source.walk import once

_NEGATED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Lt: ast.GtE, ast.GtE: ast.Lt, ast.Gt: ast.LtE, ast.LtE: ast.Gt,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip


@dataclass(frozen=True)
class Demand:
    """`left` should stand in this relation (`Eq`, `LtE`, `In`, ...) to `right`; without `right` it should be true."""

    left: ast.expr
    relation: str
    right: ast.expr | None = None


def demands_at(path: str, line: int) -> list[Demand]:
    """The demands of which one was not met where this line raised; none where it demands nothing."""
    try:
        file = file_named(path)
        return [] if file is None else next((found for first, last, found in _all(file) if first <= line <= last), [])
    except (SyntaxError, ValueError, RecursionError):
        return []


@once
def _all(file: FileModel) -> list[tuple[int, int, list[Demand]]]:
    """Of every statement that refuses: its lines, and what it refuses."""
    found = []
    for node in ast.walk(file.tree):
        if isinstance(node, ast.Assert):
            found.append((node.lineno, node.end_lineno or node.lineno, list(_demanded(node.test, met=True))))
        elif isinstance(node, ast.If):
            found += [
                (*_lines(s), list(_demanded(node.test, met=False))) for s in node.body if isinstance(s, ast.Raise)
            ]
            last = [s for s in node.orelse if isinstance(s, ast.Raise)]
            found += [(*_lines(s), list(_demanded(node.test, met=True))) for s in last]
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple):
            names = node.targets[0].elts  # `a, b = x.shape`
            if not any(isinstance(name, ast.Starred) for name in names):
                length = ast.Call(ast.Name("len", ast.Load()), [node.value], [])
                found.append((*_lines(node), [Demand(length, "Eq", ast.Constant(len(names)))]))
        elif isinstance(node, ast.Match):
            wanted = [case.pattern.value for case in node.cases if isinstance(case.pattern, ast.MatchValue)]
            subject = node.subject.value if isinstance(node.subject, ast.NamedExpr) else node.subject
            refusals = [s for case in node.cases for s in case.body if isinstance(s, ast.Raise)]
            found += [(*_lines(s), [Demand(subject, "Eq", value) for value in wanted]) for s in refusals]
    return found


def _lines(statement: ast.stmt) -> tuple[int, int]:
    return statement.lineno, statement.end_lineno or statement.lineno


def _demanded(test: ast.expr, *, met: bool) -> Iterator[Demand]:
    """The parts of a condition that should hold, or, where not `met`, should not."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        yield from _demanded(test.operand, met=not met)
    elif isinstance(test, ast.BoolOp):
        for part in test.values:
            yield from _demanded(part, met=met)
    elif isinstance(test, ast.Compare):
        sides = [test.left, *test.comparators]
        for left, relation, right in zip(sides, test.ops, sides[1:]):
            wanted = type(relation) if met else _NEGATED[type(relation)]
            yield Demand(left, wanted.__name__, right)
    elif met:
        yield Demand(test, "true")
