"""The body of a loop, read once: its variables stand for any turn, and what it leaves behind is known after all turns."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from gradsmith.deriving.loops.loop import Loop, State
from gradsmith.deriving.loops.turns import Appended, Beginning, Turns, turns_of
from gradsmith.deriving.node import Node, value_of
from gradsmith.deriving.reader import Reader
from gradsmith.deriving.refusal import LoopRefused, Promoted
from gradsmith.deriving.running import user_line
from gradsmith.deriving.scalars import Real, Whole, number, number_or_plain


class Loops:
    """Called where a loop of forward begins."""

    def __init__(self, reader: Reader, *, unrolled: bool) -> None:
        self.reader, self.unrolled = reader, unrolled

    def __call__(self, items: Any, variables: dict[str, Any], target: str, names: list[str]) -> Begun:
        turns = turns_of(self.reader.graph, items)
        open_ = self.reader.graph.open_loops
        rolled = turns is not None and turns.symbolic and not self.unrolled and not open_ and len(turns) > 1
        if not rolled or turns is None:
            return Begun(items)
        self.reader.rolled.add(user_line() or 0)
        return Rolled(self.reader, turns, variables, target, names)


class Begun:
    """A loop that is read turn by turn."""

    rolled = False

    def __init__(self, items: Any) -> None:
        self.items = items


class Rolled(Begun):
    """A loop whose body is read once."""

    rolled = True

    def __init__(self, reader: Reader, turns: Turns, variables: dict[str, Any], target: str, names: list[str]) -> None:
        super().__init__(turns)
        self.reader, self.graph = reader, reader.graph
        graph = self.graph
        self.loop = Loop(graph, graph.leaf("index", (f"turn {len(graph.pool)}",), 0), turns.count, line=user_line())
        self.loop.index.inside = frozenset([self.loop])
        self.item = turns.at(number(self.loop.index))
        counted = isinstance(self.item, Whole) and self.item.node is self.loop.index
        self.loop.index.name = target if counted and target not in ("", "_") else "i" if counted else "t"
        self.states: dict[str, Any] = {}
        self.before = {n: v for n, v in variables.items() if not n.startswith("__")}
        self.begun = {
            n: tuple(v) for n, v in self.before.items() if isinstance(v, list) and not isinstance(v, Appended)
        }
        self.asked = dict(graph.conditions)
        self.names = [n for n in names if n in self.before]
        self.flat: dict[str, list[State]] = {}
        with torch._C.DisableTorchFunction():
            for name in self.names:
                made = self._carried(name, self.before[name])
                if made is None and self.begun.get(name):
                    made = Beginning(self.begun[name])
                if made is not None:
                    self.states[name] = made
        graph.open_loops.append(self.loop)

    def _carried(self, name: str, value: Any) -> Any:
        """The variable as it is at the beginning of any turn; None for what is not carried."""
        if isinstance(value, tuple) and value and all(isinstance(v, Tensor) for v in value):
            return tuple(self._leaf(f"{name}{i}", v, name) for i, v in enumerate(value))
        if isinstance(value, (Tensor, Whole, Real)) or (
            isinstance(value, (int, float)) and not isinstance(value, bool)
        ):
            return self._leaf(name, value, name)
        return None

    def _leaf(self, name: str, value: Any, owner: str) -> Any:
        init = self.reader.nodes(value)
        if (self.loop.line, name) in self.reader.promoted:
            init = self.graph.make("new_full", self.reader.memory.inputs()[0], (), init, None)
            value = init.value
        leaf = self.graph.leaf("state", (f"{self.loop} {name}",), value_of(init), like=init)
        leaf.inside = frozenset([self.loop])
        state = State(name, leaf, init)
        self.flat.setdefault(owner, []).append(state)
        if isinstance(value, Tensor):
            leaf.needs_grad = value.is_floating_point()
            leaf.name = name
            return self.reader.memory.hold(value.detach().clone(), leaf)
        return number(leaf)

    # ---- after the body

    def leave(self, variables: dict[str, Any]) -> None:
        with torch._C.DisableTorchFunction():
            self._leave(variables)

    def _leave(self, variables: dict[str, Any]) -> None:
        self.graph.open_loops.remove(self.loop)
        self._refuse_branches()
        loop = self.loop
        for name in self.names:
            self._return(name, variables.get(name))
        new = {n: v for n, v in variables.items() if n not in self.before and not n.startswith("__")}
        for name, value in new.items():
            node = self.reader.known(value) if isinstance(value, Tensor) else None
            if node is not None and loop in node.inside and node.is_tensor:
                loop.lasts.append((name, node))
        changed = [n for n, begun in self.begun.items() if len(variables.get(n, ())) != len(begun)]
        for name in changed:
            self._list(name, variables[name])
        self._settle_gradients()
        self.results = self._results(new, changed)

    def _refuse_branches(self) -> None:
        for node in list(self.graph.conditions):
            if self.loop in node.inside and node not in self.asked:
                raise LoopRefused("what a turn does depends on which turn it is.", "Take that turn out of the loop.")

    def _return(self, name: str, value: Any) -> None:
        """What the body has left in a variable that it took over."""
        if name not in self.flat:
            old = self.before[name]
            if value is not old and not isinstance(old, list) and not (isinstance(value, Tensor) and old is None):
                raise LoopRefused(
                    f"a loop carries `{name}`, which is not a tensor.", "Carry tensors from turn to turn."
                )
            if value is not old and old is None:
                raise LoopRefused(f"`{name}` is None before the loop.", "Give it its first value before the loop.")
            return
        states = self.flat[name]
        parts = value if len(states) > 1 or isinstance(self.before[name], tuple) else (value,)
        if not isinstance(parts, tuple) or len(parts) != len(states):
            raise LoopRefused(f"a loop changes what `{name}` is.", "Carry tensors of one shape from turn to turn.")
        for state, part in zip(states, parts):
            state.new = self.reader.nodes(part)
            old = state.leaf.value
            if not state.leaf.is_tensor and isinstance(part, Tensor):
                if part.ndim or not part.is_floating_point():
                    told = f"`{state.name}` is a number before the loop and a tensor after it."
                    raise LoopRefused(told, "Begin with a tensor of the shape it has in the end.")
                raise Promoted((self.loop.line or 0, state.name))
            if state.leaf.is_tensor:
                same = isinstance(state.new, Node) and state.new.is_tensor and state.new.value.shape == old.shape
                if not same or state.new.value.dtype != old.dtype:
                    raise LoopRefused(
                        f"`{state.name}` changes its shape or dtype from turn to turn.",
                        "Carry tensors of one shape from turn to turn.",
                    )
            self.loop.states.append(state)

    def _list(self, name: str, value: Any) -> None:
        begun = self.begun[name]
        own = value.since(len(begun)) if isinstance(value, Beginning) else value if isinstance(value, list) else []
        if len(own) != 1 or not all(isinstance(v, Tensor) for v in (*begun, *own)):
            told = f"the list `{name}` gets more than one value in a turn, or values that are not tensors."
            raise LoopRefused(told, "Append one tensor in every turn.")
        self.loop.lists.append((name, self.reader.nodes(own[0])))

    def _settle_gradients(self) -> None:
        """A state has a gradient if its first value has one, or if a turn brings one in."""
        loop = self.loop
        for state in loop.states:
            state.leaf.needs_grad = isinstance(state.init, Node) and state.init.needs_grad
        body = loop.body(loop.results())
        while True:
            for node in body:
                node.needs_grad = self.graph.grows(node)
            rising = [s for s in loop.states if isinstance(s.new, Node) and s.new.needs_grad and not s.leaf.needs_grad]
            for state in rising:
                state.leaf.needs_grad = True
            if not rising:
                return

    def _results(self, new: dict[str, Any], changed: list[str]) -> dict[str, Any]:
        loop, graph = self.loop, self.graph
        inits = tuple(s.init for s in loop.states)
        captured = tuple(loop.captured(loop.results()))
        node = graph.make("loop", loop, inits, captured, value=loop.value())
        node.needs_grad = any(isinstance(n, Node) and n.needs_grad for n in loop.results())
        node.line = loop.line
        loop.node = node
        results: dict[str, Any] = {}
        for name, states in self.flat.items():
            finals = [self._final(s) for s in states]
            results[name] = tuple(finals) if isinstance(self.before[name], tuple) else finals[0]
        for i, (name, appended) in enumerate(loop.lists):
            item = graph.make("item", node, loop.position("list", i))
            item.dims, item.name, item.needs_grad = (loop.count, *appended.dims), name, appended.needs_grad
            last = self._last(appended)
            filled = Appended([appended.value.detach()] * (int(value_of(loop.count)) - 1))
            filled.append(appended.value.detach() if last is None else last)
            filled.node, filled.ends, filled.begun = item, last is not None, self.begun[name]
            results[name] = filled
        for i, (name, last) in enumerate(loop.lasts):
            item = graph.make("item", node, loop.position("last", i))
            item.dims, item.name, item.needs_grad = last.dims, name, last.needs_grad
            results[name] = self.reader.memory.hold(item.value.detach(), item)
        for name, value in new.items():
            if name not in results and isinstance(value, (Whole, Real)) and self.loop in value.node.inside:
                results[name] = None  # a number of one turn: whoever reads it after the loop is told so by Python
        return results

    def _last(self, appended: Node) -> Any:
        """The value that the last turn appended, where a state or a variable has it."""
        for i, state in enumerate(self.loop.states):
            if state.new is appended:
                return self._final(self.loop.states[i])
        return None

    def _final(self, state: State) -> Any:
        loop = self.loop
        item = self.graph.make("item", loop.node, loop.position("state", loop.states.index(state)))
        if not isinstance(item.value, torch.Tensor):
            return number_or_plain(item)
        item.dims, item.name, item.needs_grad = (
            state.leaf.dims,
            state.name,
            state.leaf.needs_grad or state.new.needs_grad,
        )
        return self.reader.memory.hold(item.value.detach(), item)
