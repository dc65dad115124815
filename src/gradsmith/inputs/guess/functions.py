"""Functions to try where an input is one: they know their own source, so that guessed inputs can be pasted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from gradsmith.lab.explore.tape import spend
from gradsmith.source.lexicon import is_a


@dataclass(frozen=True)
class Written:
    """A callable that knows its own source. `role`: "map" values to values, "apply" another function, "test" for an end."""

    code: str
    function: Callable[..., Any] = field(repr=False)
    role: str = "map"
    tupled: bool = False

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        spend()
        result = self.function(*args, **kwargs)
        return (result,) if self.tupled else result

    def __repr__(self) -> str:
        return self.code

    def as_tuple(self) -> Written:
        """The same function, its one result in a tuple; what applies or tests another one stays as it is."""
        if self.role != "map" or self.tupled or self is ITSELF:
            return self
        head, _, body = self.code.partition(": ")
        return replace(self, code=f"{head}: ({body},)", tupled=True)


# Every value matters, and each in its own way: gradients that are swapped or missing are seen.
MIXED = Written("lambda x, *more, **_: torch.sin(x) * sum(more, 1)", lambda x, *more, **_: torch.sin(x) * sum(more, 1))
ITSELF = Written("lambda *values, **_: values", lambda *values, **_: values)
UNARY = (
    Written("lambda *values, **_: torch.sin(values[0])", lambda *values, **_: torch.sin(values[0])),
    Written("lambda *values, **_: values[0].sum()", lambda *values, **_: values[0].sum()),
)
# Iterated on its first value it comes to rest, as the functions of implicit layers do.
CONTRACTION = Written(
    "lambda x, *more, **_: torch.sin(x) / 4 + sum(more, 0) / 3",
    lambda x, *more, **_: torch.sin(x) / 4 + sum(more, 0) / 3,
)
# Associative, as what combines two results into one has to be.
PRODUCT = Written("lambda a, b, *_, **__: a * b", lambda a, b, *_, **__: a * b)
SUM = Written("lambda a, b, *_, **__: a + b", lambda a, b, *_, **__: a + b)
# A function of a function: what higher-order code is given.
APPLY = Written("lambda f, *values, **_: f(*values)", lambda f, *values, **_: f(*values), "apply")
# Under MIXED and the sine of one value, this comes to an end.
TEST = Written("lambda x, *_, **__: x.abs().max() > 0.5", lambda x, *_, **__: x.abs().max() > 0.5, "test")
SQUARED = Written("lambda a, b, **_: torch.cdist(a, b) ** 2", lambda a, b, *_, **__: torch.cdist(a, b) ** 2)
DISTANCE = Written("lambda a, b, **_: torch.cdist(a, b)", lambda a, b, *_, **__: torch.cdist(a, b))


def likely(name: str, called: int, *, applies: bool) -> Iterator[Written]:
    """Functions for an input of this name, that the body calls with so many values; the likeliest first."""
    name = name.lower()
    if applies:
        yield APPLY
    if is_a(name, "stopping test"):
        yield TEST
    if is_a(name, "combining function"):
        yield PRODUCT
    distance = _distance(name)
    # A function of two values next to tensors is most often a distance.
    yield from (distance, MIXED, *UNARY) if called == 2 or "dist" in name else (MIXED, *UNARY, distance)
    yield ITSELF
    yield APPLY


def others(function: Any, name: str) -> Iterator[Any]:
    """What an author may have meant instead: functions of the same kind that answer in the same way."""
    if isinstance(function, Written) and function.role != "map":
        return
    # A squared distance, or a product, doubles a slope that a plain one has: the name tells them apart, or a factor 2
    # would be excused.
    joins = (PRODUCT, SUM) if is_a(name, "combining function") else ()
    for other in (*UNARY, CONTRACTION, ITSELF, _distance(name.lower()), *joins, MIXED):
        yield other.as_tuple() if isinstance(function, Written) and function.tupled else other


def _distance(name: str) -> Written:
    return SQUARED if "sq" in name else DISTANCE
