"""Which other values one option can take: those that somebody named for it, and those that we invent."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch

from gradsmith.lab.subject.target import Target
from gradsmith.source.literals import Scalar
from gradsmith.source.loaded import method_of, model_of, op_of
from gradsmith.source.method import Method
from gradsmith.source.model import FunctionModel
from gradsmith.source.options import Passed, bounds, named_values, passed_on, promised, tested_for_truth
from gradsmith.source.prose import quoted_words

Source = FunctionModel | Method


def source_of(target: Target) -> Source | None:
    """The model of what reads the arguments; None without source."""
    if target.function is not None:
        return model_of(target.function)
    if target.module is not None:
        return method_of(type(target.module).forward)
    return op_of(getattr(target.original, "_init_fn", target.original))


def named(value: Any, name: str, source: Source | None) -> Iterator[tuple[Scalar, str]]:
    """(value, who names it), `value` itself and None among them where they are named."""
    for found in named_values(source, name) if source is not None else ():
        yield _alike(found.value, value), found.because
    if isinstance(value, bool) or (value is None and source is not None and promised(source, name).kind == "bool"):
        yield from ((flag, "it is a bool") for flag in (True, False))
    if type(value) in (int, float, str) and source is not None and (who := tested_for_truth(source, name)):
        yield (_alike(1, value) if not value and value != "" else type(value)()), who
    if isinstance(value, str) and isinstance(source, FunctionModel):
        quoted = quoted_words(source)  # a docstring that quotes this value quotes the others, too
        yield from ((other, "its documentation names it") for other in quoted if value in quoted)
    if type(value) in (int, float) and source is not None:
        for bound in bounds(source, name):
            for other in _around(bound.number, value):
                if bound.holds(other) != bound.holds(value):
                    yield _alike(other, value), bound.because


def _around(number: int | float, value: int | float) -> list[int | float]:
    """At a bound and beside it: the next integers; of other numbers the one as far beyond as this one is before.

    >>> _around(3, 7), _around(2.5, 1), _around(0.5, 0.75)
    ([2, 3, 4], [2, 3], [0.5, 0.25])
    """
    if type(value) is int and math.isfinite(number):
        return [*range(math.ceil(number) - 1, math.floor(number) + 2)]
    return [number, 2 * number - value]


def beside(value: Any, name: str, source: Source | None, rank: int) -> Iterator[tuple[Scalar, str]]:
    """The other dimensions, where the source hands the value to torch as one, and the same one counted from the end."""
    may = source is not None and (type(value) is int or value is None)
    wholes = dict.fromkeys((name, name.partition("[")[0])) if may else ()  # `x.sum(dims[0])`, `x.sum(dims)`
    uses = [passed for whole in wholes for passed in passed_on(source, whole)] if source is not None else []
    use = next((passed for passed in uses if _takes_dim(passed)), None)
    if use is not None:
        yield from ((dim, f"torch's {use.operation} takes any dimension") for dim in _dims(value, rank))


def nearby(value: Any) -> Iterator[float]:
    """Other numbers of the same sign and magnitude, none for integers; what lies between -1 and 1 stays there."""
    if type(value) is float and value != 0 and math.isfinite(value):
        larger = 1.3 * value
        if abs(value) < 1 <= abs(larger):
            larger = math.copysign(1 - 0.7 * (1 - abs(value)), value)
        yield from (_short(0.7 * value), _short(larger))


def _short(number: float) -> float:
    """As a person would write it; 1 - 1e-5 keeps its digits."""
    rounded = float(f"{number:.3g}")
    return rounded if abs(rounded) != 1 else number


def invented(value: Any, name: str, source: Source | None, rank: int) -> Iterator[Scalar]:
    """Numbers that nobody named, the likeliest first: another dimension, one more, twice as many, the edges."""
    kind = promised(source, name).kind if value is None and source is not None else ""
    if type(value) is int:
        dims = _dims(value, rank) if -rank <= value < rank else []
        yield from (other for other in dict.fromkeys([*dims, value + 1, 2 * value, 1, 0, -1]) if other != value)
    elif isinstance(value, str) and source is not None and value in [n.value for n in named_values(source, name)]:
        yield f"not {value}"  # the other side of `mode == "..."`
    elif kind == "int":
        yield from (0, 1, -1)
    elif type(value) is float or kind == "float":
        # At 0 and 1 a missing factor does not show; elsewhere these are the edges. Not the other sign: a threshold below 0 is
        # nobody's, and right losses were told that they assume none (2 of 220 right files, and no bug was found by it).
        yield from (other for other in ((0.7,) if not value else ()) + (1.0, 0.0) if other != value)


def _dims(value: int | None, rank: int) -> list[int]:
    """Every other dimension, and the same one counted from the other end.

    >>> _dims(1, 3), _dims(-1, 2)
    ([-2, 0, 2], [1, 0])
    """
    if value is None:
        return [*range(rank)]
    same = value - rank if value >= 0 else value + rank
    return [same, *(dim for dim in range(rank) if dim not in (value, same))]


def _takes_dim(passed: Passed) -> bool:
    """Whether torch calls this argument of the operation a dimension."""
    if passed.keyword is not None:
        return passed.keyword in ("dim", "axis")
    packet = getattr(torch.ops.aten, passed.operation, None)
    overloads = [getattr(packet, name) for name in packet.overloads()] if packet is not None else []
    return any(
        argument.name.startswith("dim")
        for overload in overloads
        for position, argument in enumerate(overload._schema.arguments)
        if position == passed.position
    )


def _alike(found: Scalar, value: Any) -> Scalar:
    """A named integer as a float where the example has a float: `p == 2` for p=3.0."""
    return float(found) if type(found) is int and type(value) is float else found
