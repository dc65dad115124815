"""A value of forward or backward: an operation on other values, and what it is on the example."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from torch import Tensor

if TYPE_CHECKING:
    from gradsmith.deriving.graph import Graph

# How a dimension is known: a number that the source fixes, a size of an input, or sizes that meet in a broadcast.
Dim = Any


class Node:
    """Equal operations on equal values are one Node (`Graph.make`), so `is` compares values."""

    def __init__(self, graph: Graph, op: str, args: tuple[Any, ...], value: Any, serial: int) -> None:
        self.graph, self.op, self.args, self.value, self.serial = graph, op, args, value, serial
        self.dims: tuple[Dim, ...] = ()
        self.needs_grad = False
        self.name: str | None = None
        self.line: int | None = None
        self.back = graph.backward  # made by the sweep, so that it may be rewritten
        self.grad_of: Node | None = None  # a gradient that is kept in one piece, and whose
        self.near: Node | None = None  # the value whose gradient it is, though it may be rewritten: for its name alone
        self.terms_of: Node | None = None  # the value of whose gradient it is a part, up to sign and summing
        self.inside: frozenset[Any] = frozenset()  # the loops in whose turns it differs
        self.shared = False  # is it written once, and read by name wherever it is a factor?
        self.share: float | None = None  # of its bytes here, what it takes where reductions are long
        self.call: Node | None = (
            None  # the one call of torch that computes it, where the rules see what that is made of
        )

    @property
    def is_tensor(self) -> bool:
        return isinstance(self.value, Tensor)

    @property
    def is_parts(self) -> bool:
        """Several tensors at once, as chunk and sort return."""
        return isinstance(self.value, (tuple, list)) and any(isinstance(v, Tensor) for v in self.value)

    @property
    def operands(self) -> list[Node]:
        return list(nodes_in(self.args))

    @property
    def nbytes(self) -> int:
        values = self.value if isinstance(self.value, (tuple, list)) else [self.value]
        return sum(v.nbytes for v in values if isinstance(v, Tensor))

    def __repr__(self) -> str:
        return f"<{self.op} {self.name or self.serial}>"

    def __add__(self, other: Any) -> Any:
        return self.graph.arith("add", self, other)

    def __radd__(self, other: Any) -> Any:
        return self.graph.arith("add", other, self)

    def __sub__(self, other: Any) -> Any:
        return self.graph.arith("sub", self, other)

    def __rsub__(self, other: Any) -> Any:
        return self.graph.arith("sub", other, self)

    def __mul__(self, other: Any) -> Any:
        return self.graph.arith("mul", self, other)

    def __rmul__(self, other: Any) -> Any:
        return self.graph.arith("mul", other, self)

    def __truediv__(self, other: Any) -> Any:
        return self.graph.arith("div", self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return self.graph.arith("div", other, self)

    def __floordiv__(self, other: Any) -> Any:
        return self.graph.arith("floor_divide", self, other)

    def __pow__(self, other: Any) -> Any:
        return self.graph.arith("pow", self, other)

    def __rpow__(self, other: Any) -> Any:
        return self.graph.arith("pow", other, self)

    def __matmul__(self, other: Any) -> Any:
        return self.graph.make("matmul", self, other)

    def __neg__(self) -> Any:
        return self.graph.neg(self)

    def __gt__(self, other: Any) -> Any:
        return self.graph.make("gt", self, other)

    def __ge__(self, other: Any) -> Any:
        return self.graph.make("ge", self, other)

    def __lt__(self, other: Any) -> Any:
        return self.graph.make("lt", self, other)

    def __le__(self, other: Any) -> Any:
        return self.graph.make("le", self, other)

    def __and__(self, other: Any) -> Any:
        return self.graph.make("and", self, other)

    def __or__(self, other: Any) -> Any:
        return self.graph.make("or", self, other)

    def __invert__(self) -> Any:
        return self.graph.make("invert", self)

    def __getitem__(self, index: Any) -> Any:
        return self.graph.make("getitem", self, index)

    def __iter__(self) -> Iterator[Any]:
        raise TypeError("a Node is not iterable")

    @property
    def mT(self) -> Any:
        return self.graph.transposed(self)

    @property
    def dtype(self) -> Any:
        return self.graph.make("dtype", self)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return lambda *args, **kwargs: self.graph.call(name, (self, *args), kwargs)


def nodes_in(value: Any) -> Iterator[Node]:
    """Every Node inside tuples, lists and slices."""
    if isinstance(value, Node):
        yield value
    elif isinstance(value, (tuple, list)):
        for inner in value:
            yield from nodes_in(inner)
    elif isinstance(value, slice):
        for inner in (value.start, value.stop, value.step):
            yield from nodes_in(inner)


def value_of(value: Any) -> Any:
    """What an argument is on the example."""
    if isinstance(value, Node):
        return value.value
    if isinstance(value, (tuple, list)):
        return type(value)(value_of(v) for v in value)
    if isinstance(value, slice):
        return slice(value_of(value.start), value_of(value.stop), value_of(value.step))
    return value


def key_of(value: Any) -> Any:
    """Equal keys, equal arguments: 1, 1.0 and True differ, -0.0 and 0.0 too."""
    if isinstance(value, Node):
        return ("node", value.serial)
    if isinstance(value, (tuple, list)):
        return (type(value).__name__, *(key_of(v) for v in value))
    if isinstance(value, slice):
        return ("slice", key_of(value.start), key_of(value.stop), key_of(value.step))
    return (type(value).__name__, repr(value))


def is_number(value: Any, equal_to: float | None = None) -> bool:
    """A literal number, and which one; Nodes are none."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    return equal_to is None or (value == equal_to and not math.isnan(value))
