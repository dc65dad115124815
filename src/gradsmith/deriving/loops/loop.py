"""A loop as one value: what it carries, what it appends, and its body, computed turn by turn on the example."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count
from typing import Any

import torch

from gradsmith.deriving.graph import Graph
from gradsmith.deriving.node import Node, nodes_in, value_of

Values = dict[Node, Any]
_numbers = count()


@dataclass(eq=False)
class State:
    """A variable that a turn takes from the turn before it."""

    name: str
    leaf: Node
    init: Any  # a Node, or a number
    new: Any = None


@dataclass(eq=False)
class Loop:
    graph: Graph
    index: Node  # the number of the turn
    count: Any
    states: list[State] = field(default_factory=list)
    lists: list[tuple[str, Node]] = field(default_factory=list)  # name, what a turn appends
    lasts: list[tuple[str, Node]] = field(default_factory=list)  # name, what a variable holds after the last turn
    kept: list[Kept] = field(default_factory=list)
    node: Node | None = None
    line: int | None = None

    def __post_init__(self) -> None:
        self.number = next(_numbers)

    def __repr__(self) -> str:
        return f"loop {self.number}"

    def results(self) -> list[Any]:
        return [s.new for s in self.states] + [n for _, n in self.lists] + [n for _, n in self.lasts]

    def body(self, wanted: list[Any]) -> list[Node]:
        """The values that every turn computes anew, in order."""
        seen: set[Node] = set()
        leaves = {self.index, *(s.leaf for s in self.states)}
        todo = list(nodes_in(tuple(wanted)))
        while todo:
            node = todo.pop()
            if node not in seen and node not in leaves and self in node.inside:
                seen.add(node)
                todo += node.operands
        return sorted(seen, key=lambda n: n.serial)

    def captured(self, wanted: list[Any]) -> list[Node]:
        """Values from outside that the body reads."""
        found: dict[Node, None] = {}
        for node in [*self.body(wanted), *nodes_in(tuple(wanted))]:
            for inner in node.operands if self in node.inside else [node]:
                if self not in inner.inside:
                    found[inner] = None
        return list(found)

    def turns(self) -> list[Values]:
        """Every value of the body in every turn, on the example."""
        body = self.body(self.results())
        states = {s.leaf: value_of(s.init) for s in self.states}
        seen = []
        for k in range(int(value_of(self.count))):
            values: Values = {self.index: k, **states}
            for node in body:
                values[node] = computed(node, values)
            seen.append(values)
            states = {s.leaf: swapped(s.new, values) for s in self.states}
        return seen

    def value(self) -> tuple[Any, ...]:
        turns = self.turns()
        last = turns[-1]
        finals = [swapped(s.new, last) for s in self.states]
        lists = [[swapped(n, turn) for turn in turns] for _, n in self.lists]
        lasts = [swapped(n, last) for _, n in self.lasts]
        return (*finals, *lists, *lasts)

    def position(self, kind: str, i: int) -> int:
        return {"state": 0, "list": len(self.states), "last": len(self.states) + len(self.lists)}[kind] + i


@dataclass(eq=False)
class Kept:
    """A value of the body that backward reads in every turn; `both` where it is wanted before and after the turn."""

    node: Node
    stacked: Node
    both: bool = False


def computed(node: Node, values: Values) -> Any:
    """The value of a node of the body in one turn."""
    with torch.no_grad():
        if node.op == "vjp":
            return node.value
        return node.graph.computed(node.op, [swapped(a, values) for a in node.args])


def swapped(value: Any, values: Values) -> Any:
    """An argument with the values of this turn."""
    if isinstance(value, Node):
        return values.get(value, value.value)
    if isinstance(value, (tuple, list)):
        return type(value)(swapped(v, values) for v in value)
    if isinstance(value, slice):
        return slice(swapped(value.start, values), swapped(value.stop, values), swapped(value.step, values))
    return value
