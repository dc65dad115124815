"""Numbers that remember where they come from: sizes of inputs, and numbers among the arguments.

They are real ints and floats, so every function takes them; arithmetic on them is written down, and a comparison becomes
a condition that the derived forward tests.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from gradsmith.deriving.node import Node
from gradsmith.deriving.refusal import Refused
from gradsmith.deriving.table import INFIX
from gradsmith.source import knowledge as know


class Whole(int):
    """An int with its Node."""

    node: Node


class Real(float):
    """A float with its Node."""

    node: Node


def number(node: Node) -> Any:
    """The Python number of a scalar Node."""
    if isinstance(node.value, bool) or not isinstance(node.value, (int, float)):
        return node.value
    made: Any = Whole(node.value) if isinstance(node.value, int) else Real(node.value)
    made.node = node
    return made


def _binary(name: str, mirrored: bool) -> Callable[[Any, Any], Any]:
    def compute(self: Any, other: Any) -> Any:
        if not isinstance(other, (int, float)):
            return NotImplemented
        left, right = (other, self) if mirrored else (self, other)
        return number_or_plain(self.node.graph.arith(name, plain(left), plain(right)))

    return compute


def _comparison(name: str) -> Callable[[Any, Any], Any]:
    def compare(self: Any, other: Any) -> Any:
        if not isinstance(other, (int, float)):
            return NotImplemented
        made = self.node.graph.arith(name, self.node, plain(other))
        if isinstance(made, Node):
            self.node.graph.conditions.setdefault(made, bool(made.value))
            return bool(made.value)
        return bool(made)

    return compare


def plain(value: Any) -> Any:
    """The Node behind a number that has one."""
    return value.node if isinstance(value, (Whole, Real)) else value


def number_or_plain(value: Any) -> Any:
    return number(value) if isinstance(value, Node) else value


_ARITHMETIC = {
    "add": "add",
    "sub": "sub",
    "mul": "mul",
    "truediv": "div",
    "floordiv": "floor_divide",
    "mod": "remainder",
    "pow": "pow",
}
for _kind in (Whole, Real):
    for _dunder, _name in _ARITHMETIC.items():
        setattr(_kind, f"__{_dunder}__", _binary(_name, mirrored=False))
        setattr(_kind, f"__r{_dunder}__", _binary(_name, mirrored=True))
    for _name in know.COMPARISONS.intersection(INFIX):
        setattr(_kind, f"__{_name}__", _comparison(_name))
    _kind.__hash__ = _kind.__mro__[1].__hash__  # type: ignore
    _kind.__neg__ = lambda self: number_or_plain(self.node.graph.neg(self.node))  # type: ignore
    _kind.__bool__ = lambda self: bool(self != 0)  # type: ignore[method-assign]
    _kind.__abs__ = lambda self: self if self >= 0 else -self  # type: ignore


class _Class(type):
    """Stands for `int` or `float` while forward is read: what is converted keeps its Node."""

    real: type

    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, cls.real)

    def __call__(cls, *args: Any) -> Any:
        if args and isinstance(args[0], (Whole, Real)):
            if isinstance(args[0], cls.real):
                return args[0]
            node = args[0].node
            return number(node.graph.make("python", cls.real.__name__, node))
        return cls.real(*args)


class WholeNumbers(metaclass=_Class):
    real = int


class RealNumbers(metaclass=_Class):
    real = float


class Mathematics:
    """Stands for the module math, and for NumPy where it is used as one, while forward is read."""

    def __init__(self, graph: Any, module: Any) -> None:
        self.graph, self.module = graph, module

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.module, name)
        if isinstance(found, float) and hasattr(math, name) and math.isfinite(found):
            return number(self.graph.literal(f"math.{name}", found))
        if not callable(found) or isinstance(found, type):
            return found
        return lambda *args, **kwargs: self._call(name, found, args, kwargs)

    def _call(self, name: str, found: Any, args: Any, kwargs: Any) -> Any:
        if not any(isinstance(a, (Whole, Real)) for a in args):
            return found(*args, **kwargs)
        known = {"power": "pow", "absolute": "fabs", "abs": "fabs"}.get(name, name)
        if kwargs or not hasattr(math, known):
            raise Refused(
                f"`{getattr(self.module, '__name__', 'math')}.{name}` takes a size or number out of forward.",
                "Write it with the module math.",
            )
        return number(self.graph.make("python", f"math.{known}", *(plain(a) for a in args)))
