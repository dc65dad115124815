"""Stage 3a: one C expression per pointwise operation.

Comparisons with NaN follow torch: `clamp`, `maximum` and `relu` pass NaN on, which C's fmax would swallow.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import fx

from gradsmith.native.refused import Refused

from .nodes import args_of, dtype_of

aten = torch.ops.aten

# {0}, {1}, ... are operands already cast to the type the operation computes in.
ARITHMETIC: dict[Any, str] = {
    aten.neg.default: "(-{0})",
    aten.abs.default: "ABS({0})",
    aten.reciprocal.default: "(ONE / {0})",
    aten.sqrt.default: "SQRT({0})",
    aten.rsqrt.default: "(ONE / SQRT({0}))",
    aten.exp.default: "EXP({0})",
    aten.expm1.default: "EXPM1({0})",
    aten.log.default: "LOG({0})",
    aten.log1p.default: "LOG1P({0})",
    aten.log2.default: "LOG2({0})",
    aten.sin.default: "SIN({0})",
    aten.cos.default: "COS({0})",
    aten.tan.default: "TAN({0})",
    aten.atan.default: "ATAN({0})",
    aten.sinh.default: "SINH({0})",
    aten.cosh.default: "COSH({0})",
    aten.tanh.default: "TANH({0})",
    aten.sigmoid.default: "SIGMOID({0})",
    aten.silu.default: "({0} * SIGMOID({0}))",
    aten.erf.default: "ERF({0})",
    aten.floor.default: "FLOOR({0})",
    aten.ceil.default: "CEIL({0})",
    aten.trunc.default: "TRUNC({0})",
    aten.round.default: "RINT({0})",
    aten.sign.default: "(real)(({0} > 0) - ({0} < 0))",
    aten.relu.default: "({0} < 0 ? ZERO : {0})",
    aten.square.default: "({0} * {0})",
    aten.mul.Tensor: "({0} * {1})",
    aten.mul.Scalar: "({0} * {1})",
    aten.maximum.default: "({0} > {1} || {0} != {0} ? {0} : {1})",
    aten.minimum.default: "({0} < {1} || {0} != {0} ? {0} : {1})",
    aten.atan2.default: "ATAN2({0}, {1})",
    aten.pow.Tensor_Tensor: "POW({0}, {1})",
    aten.pow.Scalar: "POW({0}, {1})",
}
COMPARISON: dict[Any, str] = {
    aten.gt.Tensor: ">", aten.gt.Scalar: ">", aten.lt.Tensor: "<", aten.lt.Scalar: "<", aten.ge.Tensor: ">=",
    aten.ge.Scalar: ">=", aten.le.Tensor: "<=", aten.le.Scalar: "<=", aten.eq.Tensor: "==", aten.eq.Scalar: "==",
    aten.ne.Tensor: "!=", aten.ne.Scalar: "!=",
}  # fmt: skip
LOGIC: dict[Any, str] = {
    aten.logical_and.default: "({0} && {1})", aten.logical_or.default: "({0} || {1})", aten.logical_not.default: "(!{0})",
    aten.logical_xor.default: "(!{0} != !{1})", aten.isnan.default: "({0} != {0})",
    aten.bitwise_and.Tensor: "({0} & {1})", aten.bitwise_or.Tensor: "({0} | {1})", aten.bitwise_xor.Tensor: "({0} ^ {1})",
}  # fmt: skip
OTHER = frozenset({
    aten.add.Tensor, aten.sub.Tensor, aten.add.Scalar, aten.sub.Scalar, aten.div.Tensor, aten.div.Scalar, aten.where.self,
    aten.clamp.default, aten.clamp_min.default, aten.clamp_max.default, aten.hardtanh.default, aten.leaky_relu.default,
    aten.pow.Tensor_Scalar, aten._to_copy.default, aten.bitwise_not.default, aten.clone.default, aten.where.ScalarOther,
    aten.where.ScalarSelf, aten.where.Scalar, aten.clamp.Tensor, aten.rsub.Scalar, aten.div.Tensor_mode,
})  # fmt: skip
POINTWISE = frozenset({*ARITHMETIC, *COMPARISON, *LOGIC, *OTHER})
CHEAP = frozenset({
    aten.add.Tensor, aten.sub.Tensor, aten.mul.Tensor, aten.neg.default, aten.where.self, aten._to_copy.default, *COMPARISON,
})  # fmt: skip


def c_type(dtype: torch.dtype) -> str:
    """The type a value has in registers and, with the same width, in memory."""
    if dtype in (torch.float32, torch.float64):
        return "real"
    if dtype is torch.bool:
        return "flag"
    if dtype is torch.int64:
        return "whole"
    raise Refused(f"the step computes in {dtype}")


def literal(value: Any, kind: str) -> str:
    if isinstance(value, bool):
        return str(int(value)) if kind != "real" else f"(real){int(value)}"
    if isinstance(value, int):
        return f"(real){value}.0" if kind == "real" else str(value)
    if isinstance(value, float):
        if math.isnan(value):
            return "(real)NAN"
        if math.isinf(value):
            return "(real)INFINITY" if value > 0 else "(-(real)INFINITY)"
        return f"((real){value!r})"
    raise Refused(f"the step uses a constant of type {type(value).__name__}")


class Operands:
    """The arguments of one operation as C text, cast on request."""

    def __init__(self, node: fx.Node, texts: dict[fx.Node, str]) -> None:
        self.node, self.texts = node, texts

    def __call__(self, argument: Any, kind: str) -> str:
        if isinstance(argument, fx.Node):
            text = self.texts[argument]
            return text if c_type(dtype_of(argument)) == kind else f"({kind}){text}"
        return literal(argument, kind)


def expression(node: fx.Node, texts: dict[fx.Node, str]) -> str:
    """The C expression of a pointwise `node`, given the C text of its operands."""
    target, args, kwargs = node.target, args_of(node), node.kwargs
    operand = Operands(node, texts)
    kind = c_type(dtype_of(node))
    if target in ARITHMETIC:
        if kind != "real" and target not in (
            aten.mul.Tensor,
            aten.neg.default,
            aten.maximum.default,
            aten.minimum.default,
        ):
            raise Refused(f"{target} on whole numbers")
        return ARITHMETIC[target].format(*(operand(a, kind) for a in args))
    if target in COMPARISON:
        common = _common(args)
        return f"({operand(args[0], common)} {COMPARISON[target]} {operand(args[1], common)})"
    if target in LOGIC:
        own = [c_type(dtype_of(a)) if isinstance(a, fx.Node) else kind for a in args]
        return LOGIC[target].format(*(operand(a, k) for a, k in zip(args, own)))
    if target in (aten.add.Tensor, aten.sub.Tensor, aten.add.Scalar, aten.sub.Scalar):
        sign = "+" if target in (aten.add.Tensor, aten.add.Scalar) else "-"
        alpha = kwargs.get("alpha", args[2] if len(args) > 2 else 1)
        second = operand(args[1], kind)
        second = second if alpha == 1 else f"({literal(alpha, kind)} * {second})"
        return f"({operand(args[0], kind)} {sign} {second})"
    if target in (aten.where.self, aten.where.ScalarOther, aten.where.ScalarSelf, aten.where.Scalar):
        return f"({operand(args[0], 'flag')} ? {operand(args[1], kind)} : {operand(args[2], kind)})"
    return _special(node, operand, kind)


def _common(args: tuple[Any, ...]) -> str:
    kinds = {c_type(dtype_of(a)) for a in args if isinstance(a, fx.Node)}
    floats = any(isinstance(a, float) for a in args)
    return "real" if "real" in kinds or floats else "whole"


def _special(node: fx.Node, operand: Operands, kind: str) -> str:
    target, args, kwargs = node.target, args_of(node), node.kwargs
    if target in (aten.div.Tensor, aten.div.Scalar):
        return f"({operand(args[0], kind)} / {operand(args[1], kind)})"
    if target is aten.rsub.Scalar and len(args) == 2:
        return f"({operand(args[1], kind)} - {operand(args[0], kind)})"
    if target in (aten._to_copy.default, aten.clone.default):
        source: Any = args[0]
        if kind == "flag":
            return f"({operand(source, c_type(dtype_of(source)))} != 0)"
        return operand(source, kind)
    if target is aten.bitwise_not.default and kind == "flag":
        return f"(!{operand(args[0], kind)})"
    if target in (
        aten.clamp.default,
        aten.clamp.Tensor,
        aten.clamp_min.default,
        aten.clamp_max.default,
        aten.hardtanh.default,
    ):
        return _clamp(node, operand, kind)
    if target is aten.leaky_relu.default:
        value, slope = operand(args[0], kind), literal(args[1] if len(args) > 1 else 0.01, kind)
        return f"({value} > 0 ? {value} : {value} * {slope})"
    if target is aten.pow.Tensor_Scalar and kind == "real":
        return _power(operand(args[0], kind), args[1])
    raise Refused(f"{target} {'with ' + str(dict(kwargs)) if kwargs else ''} has no C form")


def _clamp(node: fx.Node, operand: Operands, kind: str) -> str:
    args = args_of(node)
    low: Any = args[1] if len(args) > 1 else node.kwargs.get("min")
    high: Any = args[2] if len(args) > 2 else node.kwargs.get("max")
    if node.target is aten.clamp_max.default:
        low, high = None, low
    if node.target is aten.hardtanh.default:
        low, high = (-1.0 if low is None else low), (1.0 if high is None else high)
    text = operand(args[0], kind)
    if low is not None:
        text = f"LIFT({text}, {operand(low, kind)})"
    if high is not None:
        text = f"CAP({text}, {operand(high, kind)})"
    return text


def _power(value: str, exponent: Any) -> str:
    simple = {
        2: "({0} * {0})",
        3: "({0} * {0} * {0})",
        1: "{0}",
        0.5: "SQRT({0})",
        -1: "(ONE / {0})",
        -0.5: "(ONE / SQRT({0}))",
    }
    if exponent in simple:
        return simple[exponent].format(value)
    if exponent == -2:
        return f"(ONE / ({value} * {value}))"
    if exponent == -1.5:
        return f"(ONE / ({value} * SQRT({value})))"
    return f"POW({value}, {literal(exponent, 'real')})"
