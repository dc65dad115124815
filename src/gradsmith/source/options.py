"""The values that the source names for a parameter: whoever wrote them down meant them to be given."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from gradsmith.source.annotations import UNKNOWN, Value, annotated
from gradsmith.source.enumerations import REDUCTIONS, enumeration
from gradsmith.source.method import Method, Param
from gradsmith.source.model import FunctionModel
from gradsmith.source.occurrences import Occurrence, occurrences

Scalar = bool | int | float | str | None
Order = Literal["<", "<=", ">", ">="]
_ORDERS: dict[type[ast.cmpop], Order] = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}
_TURNED: dict[Order, Order] = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_INFINITE = frozenset(("math.inf", "torch.inf", "numpy.inf"))


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
    """What its annotation, or its default, says of it."""
    declared = _param(subject, parameter)
    return declared[1] if declared is not None else UNKNOWN


def bounds(subject: FunctionModel | Method, parameter: str) -> list[Bound]:
    """The numbers that the source compares this parameter with by `<`, `<=`, `>` or `>=`."""
    found: dict[tuple[Order, int | float], Bound] = {}
    for use in occurrences(subject, parameter):
        for op, other, is_left in _comparisons(use):
            order = _ORDERS.get(type(op))
            values = _literals(use.method, other)
            number = values[0] if len(values) == 1 else None
            if order is not None and isinstance(number, (int, float)) and not isinstance(number, bool):
                turned = order if is_left else _TURNED[order]
                because = f"{use.method.name} tests it: `{ast.unparse(_parent(use))}`"
                found.setdefault((turned, number), Bound(turned, number, other.lineno, because))
    return list(found.values())


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
                yield from _named(_literals(use.method, other), other, f"{name} compares it with")
            elif isinstance(op, (ast.In, ast.NotIn)):
                yield from _named(_keys(use.method, other), other, f"{name} compares it with")
        parent = _parent(use)
        if isinstance(parent, ast.Match):
            patterns = [value for case in parent.cases for value in _patterns(use.method, case.pattern)]
            yield from _named(patterns, parent, f"{name} matches it with")
        elif isinstance(parent, ast.Subscript) and parent.slice is use.node:
            yield from _named(_indices(use.method, parent.value), parent, f"{name} looks it up beside")
        elif isinstance(parent, ast.Call) and isinstance(parent.func, ast.Attribute):
            asked = parent.func.attr == "get" and parent.args[:1] == [use.node]
            keys = _keys(use.method, parent.func.value) if asked else []
            yield from _named(keys, parent, f"{name} looks it up beside")
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


def _literals(method: Method, node: ast.expr | None) -> list[Scalar]:
    """The one value of a literal; none for anything else."""
    node = _behind(method, node) if isinstance(node, (ast.Name, ast.Attribute)) else node
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return [-v for v in _literals(method, node.operand) if isinstance(v, (int, float))]
    if isinstance(node, ast.Constant):
        return [node.value] if node.value is None or isinstance(node.value, (bool, int, float, str)) else []
    called = node.func if isinstance(node, ast.Call) and len(node.args) == 1 else None
    if isinstance(node, ast.Call) and isinstance(called, ast.Name) and called.id == "float":
        written = node.args[0].value if isinstance(node.args[0], ast.Constant) else None
        return [math.inf] if isinstance(written, str) and written.lower() in ("inf", "infinity") else []
    return [math.inf] if node is not None and method.dotted(node) in _INFINITE else []


def _keys(method: Method, node: ast.expr) -> list[Scalar]:
    """What is in a container that is written down: the keys of a dict."""
    node = _behind(method, node)
    if isinstance(node, ast.Dict):
        return [v for key in node.keys for v in _literals(method, key)]
    if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
        return [v for part in node.elts for v in _literals(method, part)]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and len(node.args) == 1:
        return _keys(method, node.args[0])  # frozenset((...))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "keys":
        return _keys(method, node.func.value)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "dict":
        return [k.arg for k in node.keywords if k.arg is not None]
    return []


def _indices(method: Method, node: ast.expr) -> list[Scalar]:
    node = _behind(method, node)
    return [*range(len(node.elts))] if isinstance(node, (ast.Tuple, ast.List)) else _keys(method, node)


def _behind(method: Method, node: ast.expr) -> ast.expr:
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


def _patterns(method: Method, pattern: ast.pattern) -> list[Scalar]:
    if isinstance(pattern, ast.MatchValue):
        return _literals(method, pattern.value)
    if isinstance(pattern, ast.MatchSingleton):
        return [pattern.value]
    if isinstance(pattern, ast.MatchOr):
        return [v for part in pattern.patterns for v in _patterns(method, part)]
    return _patterns(method, pattern.pattern) if isinstance(pattern, ast.MatchAs) and pattern.pattern else []


def _is_none(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and node.value is None
