"""Finite differences that a backward takes: itself, in functions of its file that it calls, or by a library's function.

A quotient counts where two values of one function are subtracted, and what it divides by was added to an argument of them.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from gradsmith.source.behind import behind, body_called
from gradsmith.source.lexicon import is_a
from gradsmith.source.method import Method, read_params
from gradsmith.source.model import FunctionModel, decorator_names
from gradsmith.source.walk import nodes_under

_DEPTH = 3  # of helpers that call helpers
_FAR = 40  # expressions that are followed back from one argument
_LEAVES = frozenset(("numpy", "data_ptr", "tolist", "item"))


@dataclass(frozen=True)
class Difference:
    """Where backward takes differences (`at` stands in backward), of which function, and what the source says of the step.

    `central` is None where it does not say. `through` is the helper that takes them.
    """

    at: ast.AST
    function: str
    step: float | None = None
    central: bool | None = None
    through: str = ""


@dataclass(frozen=True)
class _Frame:
    """A method, and what its parameters were given by the method that calls it."""

    method: Method
    above: _Frame | None = None
    given: dict[str, ast.expr] = field(default_factory=dict)

    def stands_for(self, node: ast.expr) -> tuple[ast.expr, _Frame]:
        """What an expression is: through names, constants of the file, and parameters to whoever calls."""
        node = behind(self.method, node)
        param = self.method.param_of(node)
        if param is None:
            return node, self
        if param.name in self.given and self.above is not None:
            return self.above.stands_for(self.given[param.name])
        default = param.default
        if isinstance(default, ast.Name):
            default = self.method.file.value_of(default.id) or default
        return (default, self) if default is not None else (node, self)

    def called_as(self, func: ast.expr) -> str:
        """The name under which backward, and not a helper, knows a function."""
        found, frame = self.stands_for(func) if isinstance(func, ast.Name) else (func, self)
        return ast.unparse(func if isinstance(found, (ast.Call, ast.Lambda)) and frame is self else found)


def in_backward(function: FunctionModel) -> Difference | None:
    """The first differences that backward takes of a function that forward computes outside torch."""
    forward, backward = function.forward, function.backward
    if forward is None or backward is None:
        return None
    # Few backwards take any; whether forward leaves torch takes all it calls to know.
    found = _taken(function, _Frame(backward))
    return found if found is not None and _leaves_torch(function, forward) else None


def _taken(function: FunctionModel, frame: _Frame) -> Difference | None:
    method = frame.method
    for node in method.nodes:
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div) and (found := _quotient(frame, node)):
            return found
    for call in method.calls:
        if (found := _by_library(frame, call.node, call.dotted)) is not None:
            return found
    if _depth(frame) < _DEPTH:
        for inside in _helpers(function, frame):
            found = _taken(function, inside[1])
            if found is not None:
                # A helper is named once, by the name that backward calls; what is below it is its own affair.
                return replace(found, at=inside[0], through=ast.unparse(inside[0].func))
    return None


def _depth(frame: _Frame) -> int:
    return 0 if frame.above is None else 1 + _depth(frame.above)


def _helpers(function: FunctionModel, frame: _Frame) -> Iterator[tuple[ast.Call, _Frame]]:
    """The functions of this file that a method calls, each with what it is given."""
    method = frame.method
    owner = function.node if function.file is method.file and isinstance(function.node, ast.ClassDef) else None
    for call in method.of(ast.Call):
        body = body_called(method, call.func, owner)
        if body is None or _is_above(frame, body):
            continue
        decorators = decorator_names(body, method.file)
        bound = isinstance(call.func, ast.Attribute) and not any(d == "staticmethod" for d in decorators)
        params = read_params(body, 1 if bound else 0, "other", method.file)
        names = [p.name for p in params if p.kind == "positional"]
        given = {n: a for n, a in zip(names, call.args) if not isinstance(a, ast.Starred)}
        given |= {k.arg: k.value for k in call.keywords if k.arg is not None}
        yield call, _Frame(Method(body.name, body, method.file, "function", None, params, decorators), frame, given)


def _is_above(frame: _Frame | None, body: ast.FunctionDef) -> bool:
    return frame is not None and (frame.method.node is body or _is_above(frame.above, body))


def _leaves_torch(function: FunctionModel, forward: Method) -> bool:
    waiting = [_Frame(forward)]
    while waiting:
        frame = waiting.pop()
        if any(c.is_numpy or c.is_extension or c.op in _LEAVES for c in frame.method.calls):
            return True
        if _depth(frame) < _DEPTH:
            waiting += [inside for _, inside in _helpers(function, frame)]
    return False


def _by_library(frame: _Frame, call: ast.Call, dotted: str | None) -> Difference | None:
    """A function that comes from elsewhere, by its name takes derivatives by differences, and is handed a function."""
    first = (dotted or "").partition(".")[0]
    imported = {name.partition(".")[0] for name in frame.method.file.imports.names.values()}
    if dotted is None or first not in imported or not is_a(dotted, "numerical derivative"):
        return None
    given = [*call.args, *(k.value for k in call.keywords)]
    taken_of = next((a for a in given if _is_function(frame, a)), None)
    if taken_of is None:
        return None
    named = ast.unparse(call.func)
    if isinstance(taken_of, ast.Lambda) and isinstance(taken_of.body, ast.Call):
        taken_of = taken_of.body.func
    return Difference(call, frame.called_as(taken_of), through=named)


def _is_function(frame: _Frame, node: ast.expr) -> bool:
    """It stands in this file, the file calls it somewhere, or its name says so."""
    found, there = frame.stands_for(node)
    if isinstance(found, ast.Lambda) or body_called(there.method, found) is not None:
        return True
    if not isinstance(found, (ast.Name, ast.Attribute)):
        return False
    name = ast.unparse(found)
    called = re.search(rf"(?<![\w.]){re.escape(name)}\(", frame.method.file.text) is not None
    return called or is_a(name.rpartition(".")[2], "function")


def _quotient(frame: _Frame, node: ast.BinOp) -> Difference | None:
    over, factors = _numerator(frame, node.left)
    if not (isinstance(over, ast.BinOp) and isinstance(over.op, ast.Sub)):
        return None
    steps = [*_factors(frame, node.right), *factors]
    texts = {ast.unparse(each) for step in steps for each in (step, frame.stands_for(step)[0])} - {
        "1",
        "2",
        "1.0",
        "2.0",
    }
    sides = [_calls(frame, side) for side in (over.left, over.right)]
    both = {ast.unparse(c.func) for c in sides[0]} & {ast.unparse(c.func) for c in sides[1]}
    moved = [c for side in sides for c in side if ast.unparse(c.func) in both and texts & _added(frame, c)]
    if not moved:
        return None
    # `v @ f(x)`, `np.sum(f(x))`: what is moved is the innermost.
    func = min(moved, key=lambda c: len(ast.unparse(c))).func
    parent = frame.method.file.parents.get(node)
    divided_again = isinstance(parent, ast.BinOp) and isinstance(parent.op, ast.Div) and parent.left is node
    divisors = [*steps, *(_factors(frame, parent.right) if divided_again and isinstance(parent, ast.BinOp) else ())]
    numbers = [_number(frame, each) for each in divisors]
    central = any(n is not None and n % 2 == 0 for n in numbers)
    # The divisor is the distance of the two points: of central differences that is twice the step.
    known = [n for n in numbers if n is not None]
    distance = math.prod(known) if known and len(known) == len(numbers) else None
    step = distance / 2 if distance is not None and central else distance
    return Difference(node, frame.called_as(func), step, central)


def _numerator(frame: _Frame, node: ast.expr) -> tuple[ast.expr, list[ast.expr]]:
    """The difference in `0.5 * (a - b)`, and 2 for its factor of a half."""
    node = frame.method.resolve(node)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        for part, other in ((node.left, node.right), (node.right, node.left)):
            if _number(frame, part) == 0.5:
                return frame.method.resolve(other), [ast.Constant(2)]
    return node, []


def _factors(frame: _Frame, node: ast.expr) -> list[ast.expr]:
    """`eps` and 2 of `2 * eps`. Sums, roots and norms are no steps."""
    found = frame.method.resolve(node)
    if isinstance(found, ast.BinOp) and isinstance(found.op, ast.Mult):
        return [*_factors(frame, found.left), *_factors(frame, found.right)]
    if isinstance(found, (ast.Constant, ast.Name, ast.Attribute, ast.Subscript)):
        return [node]
    return []


def _calls(frame: _Frame, node: ast.expr) -> list[ast.Call]:
    """Every call that a side of a difference is made of: `f(x)`, `f(x).sum()`, `v @ f(x)`, by way of names."""
    found: list[ast.Call] = []
    for part in nodes_under(frame.method.resolve(node)):
        if isinstance(part, ast.Call):
            found.append(part)
        elif isinstance(part, ast.Name) and isinstance(value := frame.method.resolve(part), ast.Call):
            found.append(value)
    return found


def _added(frame: _Frame, call: ast.Call) -> set[str]:
    """What is added to or subtracted from the arguments of a call, on the way to it or in place."""
    method = frame.method
    found: set[str] = set()
    waiting: list[ast.AST] = [*call.args, *(k.value for k in call.keywords)]
    followed: set[ast.AST] = set()
    while waiting and len(followed) < _FAR:
        part = waiting.pop(0)
        if part in followed:
            continue
        followed.add(part)
        for node in nodes_under(part):
            if isinstance(node, (ast.BinOp, ast.AugAssign)) and isinstance(node.op, (ast.Add, ast.Sub)):
                terms = [node.left, node.right] if isinstance(node, ast.BinOp) else [node.value]
                found |= {ast.unparse(n) for term in terms for n in nodes_under(term) if isinstance(n, ast.expr)}
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                waiting += [
                    b.statement or b.node for b in method.definitions(node) if b.how in ("assign", "augment", "unpack")
                ]
                waiting += _writes_into(method, node.id)
    return found


def _writes_into(method: Method, name: str) -> Iterator[ast.stmt]:
    """`x[i] += eps`, `x.flat[i] = value`."""
    for node in method.nodes:
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AugAssign) else ()
        )
        for target in targets:
            root = target
            while isinstance(root, (ast.Subscript, ast.Attribute)):
                root = root.value
            if root is not target and isinstance(root, ast.Name) and root.id == name and isinstance(node, ast.stmt):
                yield node


def _number(frame: _Frame, node: ast.expr) -> float | None:
    found, _ = frame.stands_for(node)
    value = found.value if isinstance(found, ast.Constant) else None
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None
