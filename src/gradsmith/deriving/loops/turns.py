"""What a loop of forward runs over: ranges and tensors whose length is remembered as a symbol."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from gradsmith.deriving.graph import Graph
from gradsmith.deriving.node import Node, value_of
from gradsmith.deriving.refusal import LoopRefused
from gradsmith.deriving.scalars import Real, Whole, number_or_plain, plain


@dataclass
class Turns:
    """`count` turns; `at(k)` is what the loop variable holds in turn k."""

    graph: Graph
    count: Any  # a number or a Node
    at: Any
    symbolic: bool

    def __iter__(self) -> Iterator[Any]:
        """Turn by turn: then the number of turns is that of the example, and forward tests it."""
        self.pin()
        return iter([self.at(k) for k in range(value_of(self.count))])

    def __len__(self) -> int:
        return int(value_of(self.count))

    def __getitem__(self, k: Any) -> Any:
        return self.at(k)

    def __reversed__(self) -> Turns:
        last = self.graph.arith("sub", self.count, 1)
        return Turns(
            self.graph,
            self.count,
            lambda k: self.at(number_or_plain(self.graph.arith("sub", last, plain(k)))),
            self.symbolic,
        )

    def pin(self) -> None:
        if isinstance(self.count, Node):
            node = self.graph.make("eq", self.count, value_of(self.count))
            self.graph.conditions.setdefault(node, True)


def turns_of(graph: Graph, value: Any) -> Turns | None:
    """What can be looped over without knowing how often; None for lists and everything else."""
    if isinstance(value, Turns):
        return value
    if isinstance(value, Unbound):
        return Turns(graph, plain(value.whole.size(value.dim)), value.at, True)
    if isinstance(value, range):
        start, step = value.start, value.step
        return Turns(graph, len(value), lambda k: start + step * k, len(value) > 4)
    if isinstance(value, Tensor) and value.ndim:
        count = plain(len_of(value))
        return Turns(graph, count, lambda k: value[k], True)
    return None


def len_of(tensor: Tensor) -> Any:
    return tensor.size(0)


class Unbound(tuple[Any, ...]):
    """What `x.unbind(dim)` gives: its parts, and where a loop over them finds the part of any turn."""

    whole: Tensor
    dim: int

    @classmethod
    def of(cls, parts: Iterable[Any], whole: Tensor, dim: int) -> Unbound:
        made = cls(parts)
        made.whole, made.dim = whole, dim % whole.ndim
        return made

    def at(self, k: Any) -> Any:
        return self.whole[(slice(None),) * self.dim + (k,)]


class Appended(list[Any]):
    """A list that every turn has appended one value to: known as a whole, and at its end."""

    node: Node
    ends: bool  # is its last value known?
    begun: tuple[Any, ...] = ()  # what it held before the loop

    def __getitem__(self, index: Any) -> Any:
        if index == -1 and self.ends:
            return super().__getitem__(-1)
        raise LoopRefused("a list that a loop has filled is read one by one.", "Use torch.stack or torch.cat on it.")

    def __iter__(self) -> Any:
        raise LoopRefused("a list that a loop has filled is read one by one.", "Use torch.stack or torch.cat on it.")

    @property
    def alone(self) -> Appended:
        """Without what it held before the loop."""
        made = Appended(list.__getitem__(self, slice(None)))
        made.node, made.ends = self.node, self.ends
        return made


class Beginning(list[Any]):
    """A list with values, while a loop appends to it: which its last one is depends on the turn."""

    def __getitem__(self, index: Any) -> Any:
        raise LoopRefused("a loop reads the list that it appends to.", "Keep the last value in a variable.")

    def __iter__(self) -> Any:
        raise LoopRefused("a loop reads the list that it appends to.", "Keep the last value in a variable.")

    def since(self, count: int) -> list[Any]:
        return list.__getitem__(self, slice(count, None))


class Looping:
    """Stands for range, reversed, enumerate and zip while forward is read."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph

    def range(self, *args: Any) -> Any:
        if not any(isinstance(a, (Whole, Real)) for a in args):
            return range(*args)
        start, stop, step = (0, *args, 1) if len(args) == 1 else (*args, 1) if len(args) == 2 else args
        graph = self.graph
        length = graph.arith("sub", plain(stop), plain(start))
        if value_of(plain(step)) != 1:
            up = graph.arith("sub", graph.arith("add", length, plain(step)), 1 if value_of(plain(step)) > 0 else -1)
            length = graph.arith("floor_divide", up, plain(step))
        if value_of(length) < 0:
            length = 0
        return Turns(
            graph,
            length,
            lambda k: (
                k
                if value_of(plain(start)) == 0 and not isinstance(start, Whole) and value_of(plain(step)) == 1
                else start + step * k
            ),
            isinstance(length, Node),
        )

    def len(self, value: Any) -> Any:
        """`len(x)` of a tensor is its first size, and stays a symbol: Python's own would make it a number."""
        if isinstance(value, Tensor):
            return len_of(value)
        if isinstance(value, Turns):
            return number_or_plain(value.count)
        return len(value)

    def reversed(self, value: Any) -> Any:
        turns = turns_of(self.graph, value) if not isinstance(value, Tensor) else None
        return reversed(turns) if turns is not None and turns.symbolic else reversed(value)

    def enumerate(self, value: Any, start: int = 0) -> Any:
        turns = turns_of(self.graph, value)
        if turns is None or not turns.symbolic:
            return enumerate(value, start)
        return Turns(self.graph, turns.count, lambda k: (k + start if start else k, turns.at(k)), True)

    def zip(self, *values: Any, **options: Any) -> Any:
        turns = [turns_of(self.graph, v) for v in values]
        if not values or any(t is None for t in turns) or not any(t is not None and t.symbolic for t in turns):
            return zip(*values, **options)
        known = [t for t in turns if t is not None]
        if len({int(value_of(t.count)) for t in known}) > 1:
            return zip(*values, **options)
        return Turns(self.graph, known[0].count, lambda k: tuple(t.at(k) for t in known), True)
