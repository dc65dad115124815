"""Elementwise Functions as functions of numbers: what forward and backward compute for one element, by arithmetic alone.

No user code runs: the syntax tree is interpreted with the few operations named here, and anything else ends the attempt.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from gradsmith.source import knowledge as know

if TYPE_CHECKING:
    from gradsmith.source.method import Method
    from gradsmith.source.model import FunctionModel

POINTS = (-2.3, -1.1, -0.37, 0.29, 0.83, 1.7)
SLOPE = 1.37  # grad_output at the point


class NotScalar(Exception):
    """Something in the way that is not plain elementwise arithmetic."""


def _sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


UNARY: Mapping[str, Callable[[float], float]] = {
    "exp": math.exp, "log": math.log, "sin": math.sin, "cos": math.cos, "tan": math.tan, "tanh": math.tanh,
    "sinh": math.sinh, "cosh": math.cosh, "atan": math.atan, "asin": math.asin, "acos": math.acos, "sqrt": math.sqrt,
    "rsqrt": lambda x: 1 / math.sqrt(x), "reciprocal": lambda x: 1 / x, "square": lambda x: x * x, "abs": abs, "neg": lambda x: -x,
    "sigmoid": _sigmoid, "relu": lambda x: max(x, 0.0), "log1p": math.log1p, "expm1": math.expm1, "erf": math.erf,
    "softplus": lambda x: math.log1p(math.exp(x)), "silu": lambda x: x * _sigmoid(x),
    "gelu": lambda x: x * (1 + math.erf(x / math.sqrt(2))) / 2, "sign": lambda x: math.copysign(1.0, x) if x else 0.0,
    "logsigmoid": lambda x: -math.log1p(math.exp(-x)), "mish": lambda x: x * math.tanh(math.log1p(math.exp(x))),
    "relu6": lambda x: min(max(x, 0.0), 6.0), "elu": lambda x: x if x > 0 else math.expm1(x), "softsign": lambda x: x / (1 + abs(x)),
}  # fmt: skip
_BINARY: Mapping[str, Callable[[float, float], float]] = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "div": lambda a, b: a / b,
    "pow": lambda a, b: a**b, "maximum": max, "minimum": min,
}  # fmt: skip
_OPERATORS: Mapping[type[ast.operator], str] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.Pow: "pow",
}  # fmt: skip
_COMPARES: Mapping[type[ast.cmpop], Callable[[float, float], bool]] = {
    ast.Gt: lambda a, b: a > b, ast.GtE: lambda a, b: a >= b, ast.Lt: lambda a, b: a < b, ast.LtE: lambda a, b: a <= b,
}  # fmt: skip


class Evaluation:
    """forward and backward of one Function at one point; `values` are the numbers its inputs have there."""

    def __init__(self, function: FunctionModel, values: Mapping[str, float]) -> None:
        self.function = function
        self.values = values

    def forward(self) -> float:
        forward = self.function.forward
        if forward is None or forward.ctx is None or len(forward.returns) != 1 or forward.writes:
            raise NotScalar
        value = forward.returns[0].value
        if value is None:
            raise NotScalar
        return self.value(forward, value)

    def gradient(self, index: int) -> float:
        backward = self.function.backward
        gradients = self.function.gradients_of(index)
        if backward is None or gradients is None or len(gradients) != 1:
            raise NotScalar
        return self._masked(backward, gradients[0])

    def _masked(self, backward: Method, node: ast.expr) -> float:
        """A value, after writes such as `grad[x < 0] = 0`."""
        value = self.value(backward, node)
        for write in backward.writes:
            statement = write.statement
            target = statement.targets[0] if isinstance(statement, ast.Assign) else None
            named = isinstance(node, ast.Name) and isinstance(write.target, ast.Name) and write.target.id == node.id
            if not named or not isinstance(target, ast.Subscript) or not isinstance(statement, ast.Assign):
                raise NotScalar
            if self.value(backward, target.slice):
                value = self.value(backward, statement.value)
        return value

    def value(self, method: Method, node: ast.expr, depth: int = 0) -> float:
        if depth > 40:
            raise NotScalar
        if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
            return float(node.value)
        if isinstance(node, ast.Name):
            return self._name(method, node, depth)
        if isinstance(node, ast.Attribute) and method.context.is_ctx(node.value):
            return self._attribute(node.attr, depth)
        if isinstance(node, ast.Subscript) and method.context.is_saved_tensors(node.value):
            index = node.slice.value if isinstance(node.slice, ast.Constant) else None
            return self._saved(index, depth)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd)):
            inner = self.value(method, node.operand, depth + 1)
            return -inner if isinstance(node.op, ast.USub) else inner
        if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
            return self._binary(_OPERATORS[type(node.op)], method, [node.left, node.right], depth)
        if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _COMPARES:
            left, right = (self.value(method, side, depth + 1) for side in (node.left, node.comparators[0]))
            return float(_COMPARES[type(node.ops[0])](left, right))
        if isinstance(node, ast.Call):
            return self._call(method, node, depth)
        raise NotScalar

    def _name(self, method: Method, node: ast.Name, depth: int) -> float:
        bindings = method.definitions(node)
        if len(bindings) != 1:
            raise NotScalar
        binding = bindings[0]
        if binding.how == "param":
            if method is self.function.backward:
                return SLOPE
            if binding.name in self.values:
                return self.values[binding.name]
        if binding.how == "assign" and binding.value is not None:
            return self.value(method, binding.value, depth + 1)
        if binding.how == "unpack" and binding.value is not None and method.context.is_saved_tensors(binding.value):
            return self._saved(binding.index, depth)
        raise NotScalar

    def _saved(self, index: object, depth: int) -> float:
        saves = self.function.saves
        if len(saves) != 1 or saves[0].starred or not isinstance(index, int) or index >= len(saves[0].exprs):
            raise NotScalar
        return self.value(saves[0].method, saves[0].exprs[index], depth + 1)

    def _attribute(self, attr: str, depth: int) -> float:
        writes = [w for w in self.function.ctx_writes if w.attr == attr]
        if len(writes) != 1 or writes[0].value is None:
            raise NotScalar
        return self.value(writes[0].method, writes[0].value, depth + 1)

    def _binary(self, op: str, method: Method, sides: list[ast.expr], depth: int) -> float:
        left, right = (self.value(method, side, depth + 1) for side in sides)
        result = _BINARY[op](left, right)
        if isinstance(result, complex):
            raise NotScalar
        return result

    def _call(self, method: Method, node: ast.Call, depth: int) -> float:
        op = method.op(node)
        torch_function = (method.dotted(node.func) or "").startswith("torch.")
        receiver = [node.func.value] if isinstance(node.func, ast.Attribute) and not torch_function else []
        operands = [*receiver, *node.args]
        options = {k.arg: k.value for k in node.keywords}
        if op in know.SAME_VALUES and receiver:
            return self.value(method, receiver[0], depth + 1)
        if op is not None and op in UNARY and len(operands) == 1 and not options:
            return UNARY[op](self.value(method, operands[0], depth + 1))
        if op is not None and op in _BINARY and len(operands) == 2 and not options:
            return self._binary(op, method, operands, depth)
        if op == "where" and len(operands) == 3:
            test, yes, no = (self.value(method, o, depth + 1) for o in operands)
            return yes if test else no
        if op == "clamp" and operands and set(options) <= {"min", "max"}:
            low = options.get("min") or (operands[1] if len(operands) > 1 else None)
            high = options.get("max") or (operands[2] if len(operands) > 2 else None)
            value = self.value(method, operands[0], depth + 1)
            value = value if low is None else max(value, self.value(method, low, depth + 1))
            return value if high is None else min(value, self.value(method, high, depth + 1))
        raise NotScalar


def at(function: FunctionModel, values: Mapping[str, float]) -> float | None:
    """forward at a point; None where it is not elementwise arithmetic or has no value there."""
    try:
        return Evaluation(function, values).forward()
    except (NotScalar, ValueError, ZeroDivisionError, OverflowError, TypeError):
        return None


def is_exact(function: FunctionModel) -> bool:
    """Is backward the derivative of forward, by every input, wherever both have values?"""
    if _is_bounded_beyond_reach(function):
        return False
    names = [p.name for p in function.inputs]
    compared = 0
    for i, first in enumerate(POINTS):
        point = {name: first if k == 0 else POINTS[(i + 2 * k) % len(POINTS)] for k, name in enumerate(names)}
        for index, name in enumerate(names):
            step = 1e-5
            above, below = (at(function, {**point, name: point[name] + d}) for d in (step, -step))
            if above is None or below is None:
                continue
            try:
                claimed = Evaluation(function, point).gradient(index)
            except (NotScalar, ValueError, ZeroDivisionError, OverflowError, TypeError):
                return False
            true = (above - below) / (2 * step) * SLOPE
            if abs(claimed - true) > 1e-5 * (1 + abs(true)):
                return False
            compared += 1
    return compared >= 3 * len(names) and bool(names)


def _is_bounded_beyond_reach(function: FunctionModel) -> bool:
    """`exp(x.clamp(-15, 15))`: what the bounds are for happens where nothing is compared."""
    reach = max(abs(p) for p in POINTS)
    methods = [m for m in (function.forward, function.backward) if m is not None]
    bounds = [
        n.value
        for m in methods
        for c in m.calls
        if c.op in ("clamp", "clip", "clamp_min", "clamp_max", "maximum", "minimum")
        for a in (*c.node.args, *(k.value for k in c.node.keywords))
        for n in ast.walk(a)
        if isinstance(n, ast.Constant) and isinstance(n.value, (int, float))
    ]
    return any(abs(bound) > reach for bound in bounds)
