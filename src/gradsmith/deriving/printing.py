"""Statements that compute some values from others: what has a name, is read twice or would be too long stands alone."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gradsmith.deriving.expressions import ATOM, FRESH, Expressions
from gradsmith.deriving.indices import apart, as_tuple
from gradsmith.deriving.loops.printing import backward_block, forward_block
from gradsmith.deriving.memory import is_all
from gradsmith.deriving.naming import label, unique
from gradsmith.deriving.node import Node, nodes_in
from gradsmith.deriving.saving import read_by
from gradsmith.deriving.wrapping import in_terms
from gradsmith.source import knowledge as know

_WIDTH = 92
_LINE = 108  # of a statement in backward, before it is indented
_NAME = re.compile(r"(?<![\w.])[A-Za-z_]\w*")
_CHEAP = ("add", "sub", "mul", "neg")


@dataclass(frozen=True)
class Statement:
    name: str
    text: str
    node: Node
    block: tuple[str, ...] = ()  # the lines of a loop, which makes several names at once

    @property
    def lines(self) -> list[str]:
        return list(self.block) or [f"{self.name} = {self.text}"]

    @property
    def uses(self) -> frozenset[str]:
        """The names that it reads."""
        return frozenset(_NAME.findall("\n".join(self.block) or self.text))


def serving(statements: Sequence[Statement], final: Iterable[str]) -> list[tuple[Statement, set[str]]]:
    """The statements, each with the names of `final` that cannot be computed without it."""
    wanted = set(final)
    served: list[tuple[Statement, set[str]]] = [(s, set(s.name.split(", ")) & wanted) for s in statements]
    for i in reversed(range(len(served))):
        statement, names = served[i]
        for before, earlier in served[:i]:  # a loop gives the names of its first values to its results
            if statement.uses & set(before.name.split(", ")):
                earlier |= names
    return served


@dataclass
class Printer(Expressions):
    """Prints statements, each in terms of those before it."""

    def inner(self, names: dict[Node, str]) -> Printer:
        """A printer for the body of a loop."""
        return Printer({**self.names, **names}, self.outside, self.taken, self.numbers)

    def statements(self, targets: Mapping[Node, str], also: Sequence[Node] = ()) -> list[Statement]:
        """Assignments that compute the targets: what is used twice, has a name or would be too long stands on its own line.

        `also` can be written down afterwards, but has no name of its own.
        """
        self._take_apart([*targets, *also])
        needed, counts = self._reach([*targets, *also])
        for node in also:
            counts[node] = counts.get(node, 0) + 1
        self.counts, self.final = counts, set(targets)
        self.taken |= set(targets.values())
        made: list[Statement] = []
        begun = {
            n.args[0] for n in needed if n.op in ("placed", "assign") and _fresh(n.args[0]) and counts[n.args[0]] == 1
        }
        begun -= set(targets)
        for node in sorted(needed, key=lambda n: n.serial):
            if node.op in ("loop", "loopback"):
                made.append(self._loop(node, targets))
                continue
            if node.op in ("placed", "assign"):
                made += self._written(node, targets, needed)
                continue
            if node in begun:
                continue
            if node in self.names:  # a loop has made it
                if node in targets and self.names[node] != targets[node]:
                    made.append(Statement(targets[node], self.names[node], node))
                    self.names[node] = targets[node]
                continue
            parts = self._parts(node, needed, targets)
            if parts:
                made += self._shortened(node, 20)
                text = self.text(node, whole=True) + ("[0]" if len(parts) == 1 else "")
                self.names |= parts
                made.append(Statement(", ".join(parts.values()), text, node))
                continue
            name = self._name(node, counts.get(node, 0), targets)
            if name is None:
                continue
            made += self._shortened(node, len(name))
            text = self.text(node, whole=True)
            made.append(Statement(name, text, node))
            self.names[node] = name
        return made

    def _shortened(self, node: Node, width: int) -> list[Statement]:
        """Lines of their own for the longest parts of a value, until what is left of it fits into one line."""
        made: list[Statement] = []
        while width + len(text := self.text(node, whole=True)) > _LINE:
            if len(text) <= 2 * _LINE and in_terms(f"{'y' * max(1, width)} = {text}", _LINE) is not None:
                break
            parts = [n for n in self._inlined(node) if len(self.text(n)) > _LINE // 3]
            if not parts:
                break
            part = min(parts, key=lambda n: (abs(len(self.text(n)) - _LINE // 2), n.serial))
            made += self._shortened(part, 0)
            text = self.text(part, whole=True)
            self.names[part] = self._plain_name(part)
            made.append(Statement(self.names[part], text, part))
        return made

    def _inlined(self, node: Node) -> Iterable[Node]:
        """The tensors of backward that are written inside the text of this one."""
        operands = nodes_in(node.args[2]) if node.op == "vjp" else node.operands
        for inner in operands if node.op not in know.OUTSIDE else ():
            if inner not in self.names and inner.op not in ("input", "literal", *know.OUTSIDE):
                if inner.is_tensor and inner.back and inner.op != "neg":
                    yield inner
                yield from self._inlined(inner)

    def _written(self, node: Node, targets: Mapping[Node, str], needed: set[Node]) -> list[Statement]:
        """Writes into parts, as a person writes them: a tensor, then `x[:, 0] = ...` line by line."""
        users = [n for n in needed if node in n.operands]
        if node not in targets and len(users) == 1 and users[0].op in ("assign", "placed") and users[0].args[0] is node:
            return []  # the first of several writes into one tensor: told with the last
        base, places = written_into(node, needed, targets)
        name = targets.get(node) or self._plain_name(node)
        inlined = base not in self.names and (_fresh(base) or base.back)
        first = self.text(base) if inlined else f"{self.text(base, ATOM)}.clone()"
        lines = [f"{name} = {first}"]
        for i, (index, value, sign) in enumerate(places):
            alone = base.op == "new_zeros" and all(apart(index, before) for before, _, _ in places[:i])
            sign = "=" if alone else sign
            text = self.text(value)
            if sign == "+=" and text.startswith("-") and isinstance(value, Node) and value.op == "neg":
                sign, text = "-=", self.text(value.args[0])
            lines.append(f"{name}[{self.index(index)}] {sign} {text}")
        self.names[node] = name
        return [Statement(name, "\n".join(lines), node, tuple(lines))]

    def _plain_name(self, node: Node) -> str:
        of = node.grad_of or node.near
        if node.op == "item" and node.back and of is not None and not of.name and "_" not in label(of):
            return unique(f"grad_{node.args[1]}", self.taken)  # of a part that has no name
        return unique(f"grad_{label(node.grad_of)}" if node.grad_of is not None else label(node), self.taken)

    def index(self, index: Any) -> str:
        """What stands between the brackets."""
        parts = list(index)
        while len(parts) > 1 and is_all(parts[-1]) and Ellipsis not in [p for p in parts if not isinstance(p, Node)]:
            parts.pop()
        return ", ".join(self.text(part) for part in parts)

    def _loop(self, node: Node, targets: Mapping[Node, str]) -> Statement:
        if node.op == "loop":
            lines, results = forward_block(self, node, [t for t in targets if t.op == "kept" and t.args[0] is node])
            self.stacks |= {n: text for n, text in results.items() if n.op == "kept"}
            results = {n: name for n, name in results.items() if n.op != "kept"}
        else:
            lines, results = backward_block(self, node, {t: name for t, name in targets.items() if t.op == "item"})
        self.names |= results
        return Statement(", ".join(results.values()), "\n".join(lines), node, tuple(lines))

    def _parts(self, node: Node, needed: set[Node], targets: Mapping[Node, str]) -> dict[Node, str]:
        """Names for all parts of a tuple, where every part has one: it is unpacked in one line."""
        if not node.is_parts or node in targets:
            return {}
        items = {n.args[1]: n for n in needed if n.op == "item" and n.args[0] is node}
        users = [n for n in needed if node in n.operands and n.op != "item"]
        if not users and len(items) == len(node.value) == 1 and items[0] in targets:
            return {items[0]: targets[items[0]]}
        if (
            users
            or len(items) < len(node.value)
            or not any(n.name or n.grad_of is not None or n.near is not None or n in targets for n in items.values())
        ):
            return {}
        return {items[i]: targets.get(items[i]) or self._plain_name(items[i]) for i in sorted(items)}

    def _take_apart(self, targets: list[Node]) -> None:
        """A call of which a part that costs something is needed by itself, or is at hand, is written as what it is made of."""
        while True:
            needed = self._reach(targets)[0]
            calls = [n for n in needed if n.call is not None and n not in self.apart]
            found = {n for n in calls if any(p in needed or p in self.names for p in _parts_of(n))}
            if not found:
                return
            self.apart |= found

    def _reach(self, targets: list[Node]) -> tuple[set[Node], dict[Node, int]]:
        seen: set[Node] = set()
        counts: dict[Node, int] = {}
        todo = list(targets)
        while todo:
            node = todo.pop()
            if node in seen or node in self.names:
                continue
            seen.add(node)
            if node.op in know.OUTSIDE:
                continue
            whole = node.call if node not in self.apart else None
            for inner in read_by(node) if node.op in ("vjp", "kept") else nodes_in((whole or node).args):
                counts[inner] = counts.get(inner, 0) + 1
                todo.append(inner)
            for inner in _read_every_turn(node):
                counts[inner] += 1  # computed once, before the loop
        return seen, counts

    def _name(self, node: Node, uses: int, targets: Mapping[Node, str]) -> str | None:
        if node in targets:
            return targets[node]
        if node in self.names or node.op in ("input", "literal", *know.OUTSIDE):
            return None
        if not node.is_tensor and not node.is_parts:
            if node.name and not node.back and uses > 1:
                return unique(node.name, self.taken)
            return None
        if node.grad_of is not None and node.grad_of.name:
            return unique(f"grad_{node.grad_of.name}", self.taken)
        if not node.back and node.name:
            return unique(node.name, self.taken)
        simple = node.op in ("mT", "item", "transpose") or (node.op == "getitem" and not node.back and _is_view(node))
        simple = simple or (node.op == "neg" and (node.args[0] in self.names or not node.args[0].operands))
        own = f"grad_{label(node.grad_of)}" if node.grad_of is not None else label(node)
        # What is long and read once is broken where it is read, unless a person would give it a name.
        long = (own == "slope" or own.startswith("grad_")) and len(self.text(node, whole=True)) > _WIDTH - 20
        return unique(own, self.taken) if long or (uses > 1 and not simple) else None


def _parts_of(node: Node) -> set[Node]:
    """The tensors between a call and what it is given."""
    assert node.call is not None
    given = set(node.call.operands)
    found: set[Node] = set()
    todo = node.operands
    while todo:
        part = todo.pop()
        if part not in found and part not in given and part.is_tensor and part.op not in ("input", *know.OUTSIDE):
            found.add(part)
            todo += part.operands
    return {part for part in found if part.op not in _CHEAP}


def _is_view(node: Node) -> bool:
    """Does it lie in the memory of what it is a part of? Then writing it twice costs nothing."""
    whole = node.args[0].value
    return bool(node.value.untyped_storage().data_ptr() == whole.untyped_storage().data_ptr())


def _read_every_turn(node: Node) -> tuple[Node, ...]:
    """What a loop reads from outside."""
    found: tuple[Node, ...] = node.args[2] if node.op == "loop" else node.args[3] if node.op == "loopback" else ()
    return found


def _fresh(node: Node) -> bool:
    """Does it make memory of its own, that nothing else can see?"""
    return node.op in (*FRESH, "create")


def written_into(node: Node, needed: set[Node], targets: Mapping[Node, str]) -> tuple[Node, list[tuple[Any, Any, str]]]:
    """The tensor that is written into, and every (index, value), for a chain of writes that nothing else reads."""
    places: list[tuple[Any, Any, str]] = []
    while True:
        base = node.args[0]
        if node.op == "placed":
            places[:0] = [(as_tuple(index), value, "+=") for index, value in node.args[1]]
        else:
            places.insert(0, (as_tuple(node.args[1]), node.args[2], "="))
        users = [n for n in needed if base in n.operands]
        if base.op in ("assign", "placed") and base not in targets and len(users) == 1 and base in needed:
            node = base
            continue
        return base, places
