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
            tests, otherwise = _chain(node)
            last = [s for s in otherwise if isinstance(s, ast.Raise)]
            found += [(*_lines(s), [d for test in tests for d in _demanded(test, met=True)]) for s in last]
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


def _chain(node: ast.If) -> tuple[list[ast.expr], list[ast.stmt]]:
    """The conditions of `if ... elif ... else`, one of which should hold, and what is done where none does."""
    tests, otherwise = [node.test], node.orelse
    while len(otherwise) == 1 and isinstance(otherwise[0], ast.If):
        tests.append(otherwise[0].test)
        otherwise = otherwise[0].orelse
    return tests, otherwise


def lookups_at(path: str, line: int) -> list[Demand]:
    """`table[mode]` in a line that found no such key: it should have been one of the keys."""
    file = file_named(path)
    if file is None or not file.parses:
        return []
    reads = (n for n in ast.walk(file.tree) if isinstance(n, ast.Subscript) and n.lineno <= line <= (n.end_lineno or 0))
    return [Demand(n.slice, "In", n.value) for n in reads if not isinstance(n.slice, (ast.Constant, ast.Slice))]


def measured_as(path: str, first: int, name: str, line: int) -> ast.expr | None:
    """What a function that begins at `first` bound a name to last before a line: `x.shape[1]` after `n, d = x.shape`."""
    file = file_named(path)
    if file is None or not file.parses:
        return None
    found: ast.expr | None = None
    functions = (n for n in ast.walk(file.tree) if isinstance(n, ast.FunctionDef))
    body = next((n for n in functions if first in (n.lineno, *(d.lineno for d in n.decorator_list))), None)
    for node in ast.walk(body) if body is not None else ():
        if isinstance(node, ast.Assign) and node.lineno <= line:
            found = _bound_in(node.targets[0], node.value, name) or found
    return found


def _bound_in(target: ast.expr, value: ast.expr, name: str) -> ast.expr | None:
    if isinstance(target, ast.Name):
        return value if target.id == name else None
    if not isinstance(target, ast.Tuple) or any(isinstance(each, ast.Starred) for each in target.elts):
        return None
    for place, each in enumerate(target.elts):
        if isinstance(each, ast.Name) and each.id == name:
            if isinstance(value, ast.Tuple) and len(value.elts) == len(target.elts):
                return value.elts[place]
            return ast.Subscript(value, ast.Constant(place), ast.Load())
    return None


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
