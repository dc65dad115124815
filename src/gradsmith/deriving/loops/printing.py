"""A loop as text: forward turn by turn, backward in reverse."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from gradsmith.deriving.loops.back import Back
from gradsmith.deriving.loops.loop import Loop, State
from gradsmith.deriving.naming import label, unique
from gradsmith.deriving.node import Node

if TYPE_CHECKING:
    from gradsmith.deriving.printing import Printer


def forward_block(printer: Printer, node: Node, kept: list[Node]) -> tuple[list[str], dict[Node, str]]:
    """The lines of the loop, and the names that hold its results afterwards. `kept` is what backward wants of every turn."""
    loop: Loop = node.args[0]
    index = unique(str(loop.index.name), printer.taken)
    inner = printer.inner({loop.index: index})
    lines: list[str] = []
    variables: dict[State, str] = {}
    for state in loop.states:
        variables[state] = name = _variable(printer, state)
        text = printer.text(state.init)
        if text != name:
            lines.append(f"{name} = {text}")
        inner.names[state.leaf] = name
    lists = {}
    for i, (name, _) in enumerate(loop.lists):
        if printer.counts.get(
            node.graph.make("item", node, loop.position("list", i))
        ):  # in backward nobody may read it
            lists[i] = unique(name, printer.taken)
            lines.append(f"{lists[i]} = []")
    keeping: dict[Node, str] = {}
    for stacked in kept:
        keeping[stacked] = unique(
            _plural(label(stacked.args[1])), printer.taken, f"kept_{label(stacked.args[1]).removesuffix('s')}s"
        )
        first = variables[_state(loop, stacked.args[1])] if stacked.args[2] else ""
        lines.append(f"{keeping[stacked]} = [{first}]")
    start = [
        f"{keeping[s]}.append({inner.names[s.args[1]]})" for s in kept if s.args[1] in inner.names and not s.args[2]
    ]
    others = [s for s in kept if s.args[1] not in inner.names]
    appended = [(lists[i], n) for i, (_, n) in enumerate(loop.lists) if i in lists]
    body = _body(inner, [s.new for s in loop.states] + [n for _, n in appended] + [s.args[1] for s in others])
    end = [f"{name}.append({inner.text(n)})" for name, n in appended]
    end += [f"{keeping[s]}.append({inner.text(s.args[1])})" for s in others]
    turn = settled(body + end, [(variables[s], inner.text(s.new)) for s in loop.states])
    after = [f"{keeping[s]}.append({variables[_state(loop, s.args[1])]})" for s in kept if s.args[2]]
    lines += [f"for {index} in range({printer.text(loop.count)}):"]
    lines += ["    " + line for line in (*start, *turn, *after)]
    results = {}
    for i, state in enumerate(loop.states):
        results[node.graph.make("item", node, loop.position("state", i))] = variables[state]
    for i, name in lists.items():
        results[node.graph.make("item", node, loop.position("list", i))] = name
    for stacked in kept:
        results[stacked] = f"torch.stack({keeping[stacked]})"
    return lines, results


def backward_block(printer: Printer, node: Node, wanted: dict[Node, str]) -> tuple[list[str], dict[Node, str]]:
    """The lines of the loop in reverse, and the names of the gradients it leaves. `wanted` has names that are fixed."""
    back: Back = node.args[0]
    loop = back.loop
    index = unique(str(loop.index.name), printer.taken)
    inner = printer.inner({loop.index: index})
    lines: list[str] = []
    names: dict[Node, str] = {}
    items = [node.graph.make("item", node, i) for i in range(len(back.carried) + len(back.added))]
    carried = {}
    for c, item in zip(back.carried, items):
        carried[c] = _reused(printer, c.init, c.name) or wanted.get(item) or unique(c.name, printer.taken)
        if printer.text(c.init) != carried[c]:
            lines.append(f"{carried[c]} = {printer.text(c.init)}")
        inner.names[c.leaf] = names[item] = carried[c]
    sums = {}
    for a, item in zip(back.added, items[len(back.carried) :]):
        name = f"grad_{label(a.node)}"
        sums[a] = names[item] = wanted.get(item) or unique(name, printer.taken, f"{name}_sum")
        lines.append(f"{sums[a]} = {printer.text(a.zeros)}")
    start = []
    for value, (kept, ahead) in back.at_hand().items():
        name = unique(label(value), printer.taken)
        turn_number = f"{index} + {ahead}" if ahead else index
        start.append(f"{name} = {printer.names[kept.stacked]}[{turn_number}]")
        inner.names[value] = name
    body = _body(inner, back.wanted())
    end = []
    for a in back.added:
        for place, part in a.parts:
            end.append(f"{sums[a]}[{inner.index(place)}] += {inner.text(part)}")
        if a.whole is not None:
            end.append(f"{sums[a]} += {inner.text(a.whole)}")
    nexts = [f"torch.zeros_like({carried[c]})" if c.next is None else inner.text(c.next) for c in back.carried]
    turn = settled(body + end, list(zip(carried.values(), nexts)))
    start = [line for line in start if any(_mentions(other, line.split(" = ")[0]) for other in turn)]
    lines.append(f"for {index} in reversed(range({printer.text(loop.count)})):")
    lines += ["    " + line for line in (*start, *turn)]
    return lines, names


def _mentions(line: str, name: str) -> bool:
    return re.search(rf"\b{name}\b", line) is not None


def settled(lines: list[str], moves: list[tuple[str, str]]) -> list[str]:
    """The lines of a turn with the assignments to its variables: a new value takes the place of the old one as soon as
    nothing reads the old one any more, else at the end of the turn."""
    left: list[tuple[str, str]] = []
    moves = [(variable, text) for variable, text in moves if variable != text]
    for i, (variable, text) in enumerate(moves):
        made = next((k for k, line in enumerate(lines) if line.startswith(f"{text} = ")), None)
        rest = [*lines[made + 1 :], *(t for _, t in moves[i + 1 :]), *(t for _, t in left)] if made is not None else []
        if made is None or any(_mentions(line, variable) for line in rest):
            left.append((variable, text))
            continue
        renamed = [re.sub(rf"\b{text}\b", variable, line) for line in lines[made + 1 :]]
        lines = [*lines[:made], variable + lines[made].removeprefix(text), *renamed]
        moves[i + 1 :] = [(v, re.sub(rf"\b{text}\b", variable, t)) for v, t in moves[i + 1 :]]
        left = [(v, re.sub(rf"\b{text}\b", variable, t)) for v, t in left]
    if not left:
        return lines
    return [*lines, f"{', '.join(v for v, _ in left)} = {', '.join(t for _, t in left)}"]


def _variable(printer: Printer, state: State) -> str:
    """The variable that holds the state: the name of its first value, where only the loop reads that."""
    return _reused(printer, state.init, state.name) or unique(state.name, printer.taken)


def _reused(printer: Printer, first: Any, name: str) -> str:
    """The name of the first value, if it is the one that is wanted and nothing but the loop reads it."""
    alone = isinstance(first, Node) and printer.names.get(first) == name and printer.counts.get(first, 0) == 1
    return name if alone else ""


def _state(loop: Loop, leaf: Node) -> State:
    return next(s for s in loop.states if s.leaf is leaf)


def _body(inner: Printer, wanted: list[Any]) -> list[str]:
    """The statements from which all that is wanted can be written down."""
    nodes = [n for n in wanted if isinstance(n, Node) and n not in inner.names]
    return [line for statement in inner.statements({}, also=nodes) for line in statement.lines]


def _plural(name: str) -> str:
    return f"all_{name}" if name.endswith("s") else f"{name}s"
