"""Which tensors of forward share memory, and what an in-place write makes of each.

A piece of memory has one current value. A view is remembered as the way that leads to it, so a write into a view becomes
a new value of the whole memory, and every other view of it is read anew.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from gradsmith.deriving.graph import Graph
from gradsmith.deriving.node import Node, value_of
from gradsmith.deriving.refusal import Refused

Step = tuple[str, tuple[Any, ...]]  # an operation that gives a view, and its arguments after the first


@dataclass(eq=False)
class MemoryCell:
    """One piece of memory: what it holds now, and how often it was written."""

    node: Node
    given: bool = False  # an input: forward must not write into it
    version: int = 0


@dataclass
class Held:
    """A tensor of forward: the memory it lies in, and the views that lead to it."""

    tensor: Tensor
    cell: MemoryCell
    way: tuple[Step, ...]
    node: Node
    version: int


@dataclass
class Memory:
    graph: Graph
    held: dict[int, Held] = field(default_factory=dict)

    def hold(self, tensor: Tensor, node: Node, *, given: bool = False) -> Tensor:
        """A tensor with memory of its own."""
        self.held[id(tensor)] = Held(tensor, MemoryCell(node, given), (), node, 0)
        return tensor

    def view(self, tensor: Tensor, node: Node, of: Tensor, step: Step) -> Tensor:
        """A tensor that lies in the memory of another."""
        base = self.held[id(of)]
        self.held[id(tensor)] = Held(tensor, base.cell, (*base.way, step), node, base.cell.version)
        return tensor

    def node(self, tensor: Tensor) -> Node | None:
        """What the tensor is now."""
        held = self.held.get(id(tensor))
        if held is None or held.tensor is not tensor:
            return None
        if held.version != held.cell.version:
            node: Any = held.cell.node
            for op, args in held.way:
                node = self.graph.make(op, node, *args)
            held.node, held.version = node, held.cell.version
        return held.node

    def seen(self, tensor: Tensor) -> Node | None:
        """What the tensor is, if nothing has been written since it was last asked."""
        held = self.held.get(id(tensor))
        current = held is not None and held.tensor is tensor and held.version == held.cell.version
        return held.node if held is not None and current else None

    def reshape(self, tensor: Tensor, node: Node, step: Step) -> None:
        """The tensor is a view of what it was from now on."""
        held = self.held[id(tensor)]
        if held.cell.given and not held.way:
            raise Refused("forward changes the shape of an input in place.", "Write it out of place.")
        held.way, held.node, held.version = (*held.way, step), node, held.cell.version

    def write(self, tensor: Tensor, new: Node) -> None:
        """The tensor holds `new` from now on, and so does the memory it lies in."""
        held = self.held[id(tensor)]
        if held.cell.given:
            raise Refused("forward changes an input in place.", "Write it out of place, or clone the input first.")
        if any(step == 0 and size > 1 for step, size in zip(tensor.stride(), tensor.shape)):
            raise Refused("forward writes into an expanded tensor.", "Write it out of place.")
        held.cell.node = self._put(held.cell.node, held.way, new)
        held.cell.version += 1

    def _put(self, whole: Node, way: tuple[Step, ...], new: Node) -> Node:
        """The whole memory with `new` where the way leads."""
        if not way:
            return new
        (op, args), rest = way[0], way[1:]
        if rest:
            new = self._put(self.graph.make(op, whole, *args), rest, new)
        made: Node = put_back(self.graph, whole, op, args, new)
        return made

    def inputs(self) -> list[Node]:
        return [h.node for h in self.held.values() if h.node.op == "input" and h.node.is_tensor]


def put_back(graph: Graph, whole: Node, op: str, args: tuple[Any, ...], new: Node) -> Any:
    """`whole` with `new` in the place of the view `op(whole, *args)`."""
    if op == "getitem":
        index = args[0] if isinstance(args[0], tuple) else (args[0],)
        return scattered(graph, whole, index, new)
    if op in ("reshape", "flatten", "unflatten", "squeeze"):
        return graph.make("reshape", new, graph.shape_of(whole))
    if op == "unsqueeze":
        return graph.make("squeeze", new, args[0])
    if op in ("transpose", "mT"):
        return graph.make(op, new, *args)
    if op == "permute":
        order = [value_of(d) % len(args[0]) for d in args[0]]
        return graph.make("permute", new, tuple(order.index(i) for i in range(len(order))))
    if op == "narrow":
        dim, start, length = args
        before = (slice(None),) * (value_of(dim) % len(whole.dims))
        return graph.make("assign", whole, (*before, slice(start, graph.arith("add", start, length))), new)
    if op == "diagonal":
        return graph.make("diagonal_scatter", whole, new, *args)
    raise Refused(f"forward writes into what `{op}` returned, which shares memory.", "Write it out of place.")


def scattered(graph: Graph, whole: Node, index: tuple[Any, ...], new: Any) -> Any:
    """`whole[index] = new`, with integers, slices and None."""
    if None in index:
        index = tuple(i for i in index if i is not None)
        new = graph.make("reshape", new, graph.shape_of(graph.make("getitem", whole, index)))
    if any(isinstance(i, bool) or (isinstance(i, Node) and i.is_tensor) for i in index):
        raise Refused("this assignment to an index has no rule.", "Use torch.where or torch.cat.")
    return graph.make("assign", whole, index, new)


def spread_out(index: tuple[Any, ...], rank: int) -> list[Any]:
    """The index with one entry per dimension: the Ellipsis, and what is left out at the end, are whole slices."""
    used = sum(_dims_used(i) for i in index if i is not None and i is not Ellipsis)
    spread: list[Any] = []
    for i in index:
        spread += [slice(None)] * (rank - used) if i is Ellipsis else [i]
    return spread if any(i is Ellipsis for i in index) else spread + [slice(None)] * (rank - used)


def _dims_used(part: Any) -> int:
    """A mask takes as many dimensions as it has."""
    if isinstance(part, Node) and part.is_tensor and str(part.value.dtype) == "torch.bool":
        return int(part.value.ndim)
    return 1


def is_all(part: Any) -> bool:
    return isinstance(part, slice) and part.start is None and part.stop is None and part.step is None
