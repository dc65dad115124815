"""Backward of a loop: one loop in reverse, that carries the gradients of the states and adds up those of everything else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

from gradsmith.deriving.loops.loop import Kept, Loop, Values, computed, swapped
from gradsmith.deriving.node import Node, value_of
from gradsmith.deriving.refusal import LoopRefused
from gradsmith.recurrent.mincut import cheapest_to_keep
from gradsmith.source import knowledge as know

_NEVER = 1 << 50
Contributions = dict[Node, list[Any]]
Sweep = Callable[[list[Node], Contributions], None]
Fit = Callable[[Node, Any], Any]


@dataclass(eq=False)
class CarriedGradient:
    """The gradient of a state: what comes in from the turn after, what goes out to the turn before."""

    name: str
    leaf: Node
    init: Node
    next: Any = None
    of: Any = None  # the first value of the state, whose gradient is left at the end


@dataclass(eq=False)
class Added:
    """The gradient of a value from outside, added up over all turns: into a part of it, or into the whole."""

    node: Node
    zeros: Node
    parts: list[tuple[Any, Any]] = field(default_factory=list)  # index, gradient of the part
    whole: Any = None


@dataclass(eq=False)
class Back:
    loop: Loop
    carried: list[CarriedGradient] = field(default_factory=list)
    added: list[Added] = field(default_factory=list)

    def __repr__(self) -> str:
        return f"back of {self.loop}"

    def wanted(self) -> list[Any]:
        parts = [v for a in self.added for _, v in a.parts] + [a.whole for a in self.added if a.whole is not None]
        return [c.next for c in self.carried if c.next is not None] + parts

    def body(self) -> list[Node]:
        """What every turn of backward computes, in order: gradients, and values of forward again."""
        leaves = {self.loop.index, *(s.leaf for s in self.loop.states), *(c.leaf for c in self.carried)}
        leaves |= set(self.at_hand())
        seen: set[Node] = set()
        todo = [n for n in self.wanted() if isinstance(n, Node)]
        while todo:
            node = todo.pop()
            if node not in seen and node not in leaves and self.loop in node.inside:
                seen.add(node)
                todo += node.operands
        return sorted(seen, key=lambda n: n.serial)

    def at_hand(self) -> dict[Node, tuple[Kept, int]]:
        """What is kept of every turn, and how far from the turn's own number it stands."""
        found = {k.node: (k, 0) for k in self.loop.kept}
        for k in self.loop.kept:
            if k.both:
                state = next(s for s in self.loop.states if s.leaf is k.node)
                found[state.new] = (k, 1)
        return found

    def reads(self) -> list[Node]:
        """Values from outside of the loop."""
        found: dict[Node, None] = {}
        for node in [*self.body(), *(n for n in self.wanted() if isinstance(n, Node))]:
            for inner in node.operands if self.loop in node.inside else [node]:
                if self.loop not in inner.inside:
                    found[inner] = None
        return list(found)

    def value(self) -> tuple[Any, ...]:
        """What the loop gives on the example."""
        turns = self.loop.turns()
        body = self.body()
        carried: Values = {c.leaf: value_of(c.init) for c in self.carried}
        sums = {a.node: value_of(a.zeros).clone() for a in self.added}
        for turn in reversed(turns):
            values = {**turn, **carried}
            for node in body:
                if node not in values:
                    values[node] = computed(node, values)
            for a in self.added:
                if a.whole is not None:
                    sums[a.node] += swapped(a.whole, values)
                for index, part in a.parts:
                    sums[a.node][swapped(index, values)] += swapped(part, values)
            carried = {
                c.leaf: torch.zeros_like(values[c.leaf]) if c.next is None else swapped(c.next, values)
                for c in self.carried
            }
        return (*(carried[c.leaf] for c in self.carried), *(sums[a.node] for a in self.added))


def pulled(node: Node, parts: dict[int, Any], sweep: Sweep, fit: Fit) -> Iterator[tuple[Any, Any]]:
    """The gradients of what the loop starts from and of what it reads, from the gradients of what it leaves."""
    loop: Loop = node.args[0]
    graph = node.graph
    back = Back(loop)
    contributions: Contributions = {}
    some = _a_gradient(parts)
    _carry(back, parts, contributions, some)
    for i, (_, appended) in enumerate(loop.lists):
        position = loop.position("list", i)
        if position in parts:
            contributions.setdefault(appended, []).append(_of_turn(loop, parts[position], appended))
    if any(loop.position("last", i) in parts for i in range(len(loop.lasts))):
        raise LoopRefused("a value of the last turn is used after the loop.", "Give it a first value before the loop.")
    inside = [n for n in loop.body(loop.results()) if n.needs_grad]
    sweep(sorted(inside, key=lambda n: -n.serial), contributions)
    for carried, state in zip(back.carried, [s for s in loop.states if _differentiable(s.new)]):
        if state.leaf in contributions:
            carried.next = fit(state.leaf, contributions[state.leaf])
    for outer, found in _of_whole(contributions).items():
        if loop not in outer.inside and outer.needs_grad:
            back.added.append(_added(graph, outer, found, some, fit))
    _keep(back)
    kept = tuple(k.stacked for k in loop.kept)
    inits = tuple(c.init for c in back.carried) + tuple(a.zeros for a in back.added)
    made = graph.make("loopback", back, kept, inits, tuple(back.reads()), loop.count, value=back.value())
    for i, carried in enumerate(back.carried):
        if isinstance(carried.of, Node):
            yield carried.of, _item(made, i, carried.of)
    for i, added in enumerate(back.added):
        yield added.node, _item(made, len(back.carried) + i, added.node)


def _of_whole(contributions: Contributions) -> Contributions:
    """What a loop adds up for `w.mT`, as the gradient of `w`."""
    found: Contributions = {}
    for node, parts in contributions.items():
        if node.op == "mT" and all(isinstance(c, Node) and c.op == "matmul" for c in parts):
            found.setdefault(node.args[0], []).extend(node.graph.transposed(c) for c in parts)
        else:
            found.setdefault(node, []).extend(parts)
    return found


def _item(made: Node, i: int, of: Node) -> Node:
    item: Node = made.graph.make("item", made, i)
    item.dims, item.back = of.dims, True
    return item


def _a_gradient(parts: dict[int, Any]) -> Node:
    found = next(iter(parts.values()))
    source: Node = found.args[0] if found.op in ("unbind", "split") else found
    return source


def _differentiable(new: Any) -> bool:
    return isinstance(new, Node) and new.needs_grad


def _carry(back: Back, parts: dict[int, Any], contributions: Contributions, some: Node) -> None:
    loop, graph = back.loop, back.loop.graph
    for i, state in enumerate(loop.states):
        if not _differentiable(state.new):
            continue
        leaf = graph.leaf("carried", (f"{loop} {state.name}",), torch.ones_like(state.leaf.value), like=state.leaf)
        leaf.name, leaf.back = f"grad_{state.name}", True
        leaf.inside = frozenset([loop])
        g = parts.get(loop.position("state", i))
        init = graph.zeros_of(some, state.init) if g is None else g
        back.carried.append(CarriedGradient(f"grad_{state.name}", leaf, init, of=state.init))
        contributions.setdefault(state.new, []).append(leaf)


def _of_turn(loop: Loop, gradients: Node, appended: Node) -> Any:
    """The part of a stacked or concatenated gradient that belongs to one turn."""
    from gradsmith.deriving.structured.moving import at

    graph = loop.graph
    if gradients.op == "unbind":
        return at(gradients.args[0], gradients.args[1], loop.index)
    g, piece, dim = gradients.args
    start = graph.arith("mul", loop.index, piece)
    return at(g, dim, slice(start, graph.arith("add", start, piece)))


def _added(graph: Any, outer: Node, found: list[Any], some: Node, fit: Fit) -> Added:
    added = Added(outer, graph.zeros_of(some, outer))
    whole = []
    for c in found:
        if isinstance(c, Node) and c.op == "placed" and c.args[0].op == "new_zeros":
            added.parts += c.args[1]
        else:
            whole.append(c)
    if whole:
        added.whole = fit(outer, whole)
    return added


def _keep(back: Back) -> None:
    """What forward keeps of every turn: the fewest bytes from which a turn can be computed again, for `--fast` without products."""
    loop = back.loop
    leaves = {s.leaf for s in loop.states}
    needed = {n for n in [*_forward_reads(back)] if n.is_tensor}
    cost: dict[Node, int] = {}
    operands: dict[Node, list[Node]] = {}
    given = []
    todo = list(needed)
    while todo:
        node = todo.pop()
        if node in cost:
            continue
        operation = node.graph.operations.get(node.op)
        away = node in leaves or node.op in know.OUTSIDE
        inner = [] if away else [n for n in node.operands if (n.is_tensor or n.is_parts) and loop in n.inside]
        cost[node] = _NEVER if node.is_parts else node.nbytes * 16 + (2 if node in leaves else 3)
        operands[node] = inner
        expensive = loop.graph.fast and operation is not None and operation.kind == "x" and inner
        if node in leaves or expensive or node.op.startswith("rand"):
            given.append(node)
        todo += inner
    chosen = cheapest_to_keep(cost, operands, given, needed) if needed else set()
    for state in loop.states:
        before, after = state.leaf in chosen, isinstance(state.new, Node) and state.new in chosen
        if before and after:
            chosen.discard(state.new)
        if before:
            loop.kept.append(_kept(loop, state.leaf, both=after))
    for node in sorted(chosen - leaves, key=lambda n: n.serial):
        loop.kept.append(_kept(loop, node, both=False))


def _kept(loop: Loop, node: Node, *, both: bool) -> Kept:
    assert loop.node is not None
    graph = loop.graph
    listed = _listed(loop, node, both=both)
    if listed is not None:
        return Kept(node, listed, both)
    values = [turn[node] for turn in loop.turns()]
    if both:
        state = next(s for s in loop.states if s.leaf is node)
        values.append(swapped(state.new, loop.turns()[-1]))
    was, graph.backward = graph.backward, False
    stacked: Node = graph.make("kept", loop.node, node, both, value=torch.stack(values))
    graph.backward = was
    stacked.needs_grad, stacked.back, stacked.inside = False, False, frozenset()
    count = graph.arith("add", loop.count, 1) if both else loop.count
    stacked.dims, stacked.name = (count, *node.dims), f"all_{node.name or node.op}"
    return Kept(node, stacked, both)


def _listed(loop: Loop, node: Node, *, both: bool) -> Node | None:
    """The values of a state that forward stacks anyway: the first value, and then what its list holds."""
    graph = loop.graph
    state = next((s for s in loop.states if s.leaf is node), None)
    if state is None or not isinstance(state.init, Node) or state.init.value.shape != node.value.shape:
        return None
    for i, (_, appended) in enumerate(loop.lists):
        stacks = [n for n in list(graph.pool.values()) if n.op == "stack" and not n.back and n.args[1] == 0]
        items = [n for n in stacks if _is_list(n.args[0], loop, i)]
        if appended is state.new and items:
            with graph.of_forward():
                later = items[0] if both else graph.make("getitem", items[0], slice(None, -1))
                made: Node = graph.make("cat", (graph.make("unsqueeze", state.init, 0), later), 0)
            made.name, made.needs_grad = f"all_{state.name}", False
            count = graph.arith("add", loop.count, 1) if both else loop.count
            made.dims = (count, *node.dims)
            return made
    return None


def _is_list(value: Any, loop: Loop, i: int) -> bool:
    """Is this the list that the loop has filled?"""
    own = isinstance(value, Node) and value.op == "item" and value.args[0] is loop.node
    return own and bool(value.args[1] == loop.position("list", i))


def _forward_reads(back: Back) -> list[Node]:
    """Values of forward, of the same turn, that the gradients are made of."""
    loop, found, seen = back.loop, [], set()
    todo = [n for n in back.wanted() if isinstance(n, Node)]
    while todo:
        node = todo.pop()
        if node in seen or loop not in node.inside or node.op in know.OUTSIDE:
            continue
        seen.add(node)
        if not node.back:
            found.append(node)
        else:
            todo += node.operands
    return [n for n in found if n is not loop.index]
