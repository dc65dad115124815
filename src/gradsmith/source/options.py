"""The values that the source names for a parameter: whoever wrote them down meant them to be given."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from gradsmith.source.annotations import UNKNOWN, Value, annotated
from gradsmith.source.enumerations import REDUCTIONS, enumeration
from gradsmith.source.literals import Scalar, indices, keys, literals, patterns
from gradsmith.source.method import Method, Param
from gradsmith.source.model import FunctionModel
from gradsmith.source.occurrences import Occurrence, occurrences

Order = Literal["<", "<=", ">", ">="]
_ORDERS: dict[type[ast.cmpop], Order] = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}
_TURNED: dict[Order, Order] = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


@dataclass(frozen=True)
class NamedValue:
    """A value, the line that names it, and how: "forward compares it with 'fan_in'"."""

    value: Scalar
    line: int
    because: str


@dataclass(frozen=True)
class Bound:
    """`parameter < number`, on some line: the parameter may be on either side."""

    order: Order
    number: int | float
    line: int
    because: str

    def holds(self, value: int | float) -> bool:
        """On which side a value is.

        >>> Bound("<", 2, 1, "").holds(1), Bound("<", 2, 1, "").holds(2)
        (True, False)
        """
        if self.order in ("<", "<="):
            return value < self.number or (self.order == "<=" and value == self.number)
        return value > self.number or (self.order == ">=" and value == self.number)


@dataclass(frozen=True)
class Passed:
    """Handed on to an operation of torch: as a keyword, or at a position that counts the tensor."""

    operation: str
    position: int | None
    keyword: str | None
    line: int


def named_values(subject: FunctionModel | Method, parameter: str) -> list[NamedValue]:
    """Every value that the source names for this parameter of forward, each once; in the order in which it names them.

    By `Literal`, a comparison, a `match`, a lookup in a table, or by handing it to a function of torch that takes a few words.
    """
    found: dict[tuple[type, Scalar], NamedValue] = {}
    for named in (*_declared(subject, parameter), *_read(subject, parameter)):
        found.setdefault((type(named.value), named.value), named)
    words = [named for named in found.values() if isinstance(named.value, str)]
    if words and all(named.value in REDUCTIONS for named in words):
        first = words[0]
        for word in REDUCTIONS:  # the branch that is left over tests for none of its words
            found.setdefault((str, word), NamedValue(word, first.line, "losses of torch take it, too"))
    return list(found.values())


def takes_none(subject: FunctionModel | Method, parameter: str) -> bool:
    """None is its default, in its annotation, or tested for."""
    declared = _param(subject, parameter)
    if declared is not None and (declared[1].optional or _is_none(declared[0].default)):
        return True
    return any(named.value is None for named in named_values(subject, parameter))


def promised(subject: FunctionModel | Method, parameter: str) -> Value:
    """What its annotation, or its default, says of it; else that it is an integer, where it is compared with a size."""
    declared = _param(subject, parameter)
    told = declared[1] if declared is not None else UNKNOWN
    if told.kind == "unknown" and not told.parts and _is_compared_with_a_size(subject, parameter):
        return told._replace(kind="int")
    return told


def _is_compared_with_a_size(subject: FunctionModel | Method, parameter: str) -> bool:
    """`k >= x.shape[dim]`, `k < len(rows)`: nothing but an integer is meant."""
    return any(
        type(op) in _ORDERS and any(_is_a_size(node) for node in ast.walk(other))
        for use in occurrences(subject, parameter)
        for op, other, _ in _comparisons(use)
    )


def _is_a_size(node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        node = node.func
        return (isinstance(node, ast.Name) and node.id == "len") or getattr(node, "attr", "") in (
            "size",
            "numel",
            "dim",
        )
    return isinstance(node, ast.Attribute) and node.attr in ("shape", "ndim")


def bounds(subject: FunctionModel | Method, parameter: str) -> list[Bound]:
    """The numbers that the source compares this parameter with by `<`, `<=`, `>` or `>=`."""
    found: dict[tuple[Order, int | float], Bound] = {}
    for use in occurrences(subject, parameter):
        for op, other, is_left in _comparisons(use):
            order = _ORDERS.get(type(op))
            values = literals(use.method, other)
            number = values[0] if len(values) == 1 else None
            if order is not None and isinstance(number, (int, float)) and not isinstance(number, bool):
                turned = order if is_left else _TURNED[order]
                because = f"{use.method.name} tests it: `{ast.unparse(_parent(use))}`"
                found.setdefault((turned, number), Bound(turned, number, other.lineno, because))
    return list(found.values())


def tested_for_truth(subject: FunctionModel | Method, parameter: str) -> str:
    """Who asks whether it is 0, or empty: "forward asks whether it is 0 or empty"; nothing where nobody does."""
    for use in occurrences(subject, parameter):
        parent = _parent(use)
        tested = (isinstance(parent, (ast.If, ast.IfExp, ast.While)) and parent.test is use.node) or (
            isinstance(parent, ast.UnaryOp) and isinstance(parent.op, ast.Not)
        )
        if tested or (isinstance(parent, ast.BoolOp) and use.node is not parent.values[-1]):
            return f"{use.method.name} asks whether it is 0 or empty"
    return ""


def passed_on(subject: FunctionModel | Method, parameter: str) -> list[Passed]:
    """The operations of torch that get this parameter."""
    return [passed for use in occurrences(subject, parameter) if (passed := _passed(use)) is not None]


def _param(subject: FunctionModel | Method, parameter: str) -> tuple[Param, Value] | None:
    """The parameter and what its annotation promises, also by the name that the file gives to a type."""
    method = subject if isinstance(subject, Method) else subject.forward
    param = method.param(parameter) if method is not None else None
    if method is None or param is None:
        return None
    written = param.annotation
    name = written.value if isinstance(written, ast.Constant) else getattr(written, "id", None)
    alias = method.file.value_of(name) if isinstance(name, str) else None
    return param, annotated(alias, method.file.dotted) if alias is not None else param.declared


def _declared(subject: FunctionModel | Method, parameter: str) -> Iterator[NamedValue]:
    declared = _param(subject, parameter)
    for option in declared[1].options if declared is not None else ():
        if declared is not None and isinstance(option, (bool, int, float, str)):
            yield NamedValue(option, declared[0].node.lineno, "its annotation names it")


def _read(subject: FunctionModel | Method, parameter: str) -> Iterator[NamedValue]:
    for use in occurrences(subject, parameter):
        name = use.method.name
        for op, other, _ in _comparisons(use):
            if isinstance(op, (ast.Eq, ast.NotEq, ast.Is, ast.IsNot)):
                yield from _named(literals(use.method, other), other, f"{name} compares it with")
            elif isinstance(op, (ast.In, ast.NotIn)):
                yield from _named(keys(use.method, other), other, f"{name} compares it with")
        parent = _parent(use)
        if isinstance(parent, ast.Match):
            matched = [value for case in parent.cases for value in patterns(use.method, case.pattern)]
            yield from _named(matched, parent, f"{name} matches it with")
        elif isinstance(parent, ast.Subscript) and parent.slice is use.node:
            yield from _named(indices(use.method, parent.value), parent, f"{name} looks it up beside")
        elif isinstance(parent, ast.Call) and isinstance(parent.func, ast.Attribute):
            asked = parent.func.attr == "get" and parent.args[:1] == [use.node]
            found = keys(use.method, parent.func.value) if asked else []
            yield from _named(found, parent, f"{name} looks it up beside")
        passed = _passed(use)
        if passed is not None:
            words = enumeration(passed.operation, passed.position, passed.keyword)
            yield from (NamedValue(word, passed.line, f"torch's {passed.operation} takes it") for word in words)


def _named(values: list[Scalar], node: ast.expr | ast.stmt, because: str) -> Iterator[NamedValue]:
    yield from (NamedValue(value, node.lineno, f"{because} {value!r}") for value in values)


def _parent(use: Occurrence) -> ast.AST:
    return use.method.file.parents[use.node]


def _comparisons(use: Occurrence) -> Iterator[tuple[ast.cmpop, ast.expr, bool]]:
    """(operator, what it is compared with, whether it stands on the left)."""
    parent = _parent(use)
    if isinstance(parent, ast.Compare):
        sides = [parent.left, *parent.comparators]
        for op, left, right in zip(parent.ops, sides, sides[1:]):
            if use.node in (left, right):
                yield op, right if left is use.node else left, left is use.node


def _passed(use: Occurrence) -> Passed | None:
    parent = _parent(use)
    call = use.method.file.parents.get(parent) if isinstance(parent, ast.keyword) else parent
    operation = use.method.op(call) if isinstance(call, ast.Call) else None
    if not isinstance(call, ast.Call) or operation is None or use.node is call.func:
        return None
    function = (use.method.dotted(call.func) or "").startswith("torch.")
    position = call.args.index(use.node) + (0 if function else 1) if use.node in call.args else None
    return Passed(operation, position, parent.arg if isinstance(parent, ast.keyword) else None, call.lineno)


def _is_none(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and node.value is None
