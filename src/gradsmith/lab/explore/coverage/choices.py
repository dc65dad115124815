"""Operations that treat some elements differently from others, and which way they went: one row for each sort of choice."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from gradsmith.lab.explore.tape import Operation
from gradsmith.lab.explore.tape import Seen as Operand
from gradsmith.source import knowledge as know

Question = Callable[[Operation], dict[str, bool] | None]


@dataclass(frozen=True)
class Choice:
    """What one operation could do, and whether it did: {"saw a negative number": False, ...}."""

    operation: Operation
    sides: dict[str, bool]
    origins: frozenset[int]


def choices(operations: Iterator[Operation]) -> Iterator[Choice]:
    """The choices of these operations. A mask that a comparison made was counted there."""
    compared: set[int] = set()
    for op in operations:
        if op.line is None:
            continue
        question = _QUESTIONS.get(op.name)
        if op.name in know.COMPARISONS:
            compared.update(result.memory for result in op.results)
        if question is None or (op.name in _MASKED and any(m.memory in compared for m in _masks(op))):
            continue
        sides = question(op)
        if sides:
            yield Choice(op, sides, op.origins)


def _compared(op: Operation) -> dict[str, bool] | None:
    result = _values(op.results[0]) if op.results else None
    return None if result is None else {"was true": bool(result.any()), "was false": not bool(result.all())}


def _masked(op: Operation) -> dict[str, bool] | None:
    found = [values for mask in _masks(op) if (values := _values(mask)) is not None]
    if not found:
        return None
    return {
        "saw a True in its mask": any(bool(m.any()) for m in found),
        "saw a False in its mask": any(not bool(m.all()) for m in found),
    }


def _masks(op: Operation) -> list[Operand]:
    """The boolean operands: of `index` they stand in a tuple."""
    return [operand for operand in op.operands if operand.dtype == torch.bool]


def _of_two(op: Operation) -> dict[str, bool] | None:
    if len(op.args) < 2 or not isinstance(op.args[1], Operand):
        return None
    a, b = _real(op.args[0]), _real(op.args[1])
    if a is None or b is None:
        return None
    first, second = (a > b, b > a) if op.name in ("maximum", "fmax", "max") else (a < b, b < a)
    return {"took its first operand": bool(first.any()), "took its second operand": bool(second.any())}


def _bounds(op: Operation) -> tuple[float | Tensor | None, float | Tensor | None]:
    """The lower and the upper bound of a clamp."""
    given = [_bound(a) for a in op.args[1:3]]
    low, high = _bound(op.kwargs.get("min")), _bound(op.kwargs.get("max"))
    if op.name == "clamp_max":
        return None, given[0] if given else high
    return given[0] if given else low, given[1] if len(given) > 1 else high


def _clamped(op: Operation) -> dict[str, bool] | None:
    x = _real(op.args[0]) if op.args else None
    if x is None:
        return None
    low, high = _bounds(op)
    below = torch.zeros_like(x, dtype=torch.bool) if low is None else x < low
    above = torch.zeros_like(x, dtype=torch.bool) if high is None else x > high
    sides = {"saw a number within its bounds": bool((~(below | above)).any())}
    if low is not None:
        sides["saw a number below its lower bound"] = bool(below.any())
    if high is not None:
        sides["saw a number above its upper bound"] = bool(above.any())
    return sides


def _pieces(*defaults: float, given: bool = False, opposite: bool = False) -> Question:
    """An operation with these bends: those that it was given as numbers, else those that it has by default."""

    def ask(op: Operation) -> dict[str, bool] | None:
        x = _real(op.args[0]) if op.args else None
        if x is None:
            return None
        bends = list(defaults)
        if given:
            numbers = [float(a) for a in op.args[1:3] if isinstance(a, (int, float)) and not isinstance(a, bool)]
            bends = [*numbers, *bends[len(numbers) :]][: len(bends)]
        if opposite:
            bends = [-bends[0], bends[0]]
        return dict(_between(x, sorted(bends)))

    return ask


def _between(x: Tensor, bends: list[float]) -> Iterator[tuple[str, bool]]:
    zero = bends == [0.0]
    yield "saw a negative number" if zero else f"saw a number below {bends[0]:g}", bool((x < bends[0]).any())
    for low, high in itertools.pairwise(bends):
        yield f"saw a number between {low:g} and {high:g}", bool(((x > low) & (x < high)).any())
    yield "saw a positive number" if zero else f"saw a number above {bends[-1]:g}", bool((x > bends[-1]).any())


def _softplus(op: Operation) -> dict[str, bool] | None:
    x = _real(op.args[0]) if op.args else None
    if x is None:
        return None
    beta, threshold = [
        *(float(a) for a in op.args[1:3] if isinstance(a, (int, float))),
        *(1.0, 20.0)[len(op.args) - 1 :],
    ]
    return dict(_between(x * beta, [threshold]))


def _of_distance(op: Operation) -> dict[str, bool] | None:
    """Losses that are quadratic near and linear far away."""
    if len(op.args) < 2:
        return None
    a, b = _real(op.args[0]), _real(op.args[1])
    if a is None or b is None:
        return None
    delta = float(op.args[3]) if len(op.args) > 3 else float(op.kwargs.get("delta", op.kwargs.get("beta", 1.0)))
    far = (a - b).abs() > delta
    return {f"saw a distance below {delta:g}": not bool(far.all()), f"saw a distance above {delta:g}": bool(far.any())}


def _values(operand: Any) -> Tensor | None:
    values = operand.values if isinstance(operand, Operand) else None
    return values if values is not None and values.numel() else None


def _real(operand: Any) -> Tensor | None:
    values = _values(operand)
    return None if values is None or values.is_complex() or values.dtype == torch.bool else values


def _bound(value: Any) -> float | Tensor | None:
    if isinstance(value, Operand):
        return value.values
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


_MASKED = frozenset({"where", "masked_fill", "masked_select", "masked_scatter", "index", "index_put"})
_QUESTIONS: dict[str, Question] = {
    **dict.fromkeys(know.COMPARISONS, _compared),
    **dict.fromkeys(_MASKED, _masked),
    **dict.fromkeys(know.CLAMPS, _clamped),
    **dict.fromkeys(("maximum", "minimum", "fmax", "fmin", "max", "min"), _of_two),
    **dict.fromkeys(("abs", "sign", "sgn", "signbit", "relu", "leaky_relu", "elu", "selu", "celu"), _pieces(0.0)),
    **dict.fromkeys(("prelu", "_prelu_kernel", "rrelu", "rrelu_with_noise", "heaviside"), _pieces(0.0)),
    "relu6": _pieces(0.0, 6.0),
    "hardtanh": _pieces(-1.0, 1.0, given=True),
    "hardsigmoid": _pieces(-3.0, 3.0),
    "hardswish": _pieces(-3.0, 3.0),
    "threshold": _pieces(0.0, given=True),
    "hardshrink": _pieces(0.5, given=True, opposite=True),
    "softshrink": _pieces(0.5, given=True, opposite=True),
    "softplus": _softplus,
    "huber_loss": _of_distance,
    "smooth_l1_loss": _of_distance,
}
