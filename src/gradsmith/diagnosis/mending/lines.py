"""Derived gradients as lines of Python, in terms of what a backward has at hand; what it lacks is to be kept by forward."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from gradsmith.deriving.deriving import Swept
from gradsmith.deriving.expressions import NotAtHand
from gradsmith.deriving.naming import label, unique
from gradsmith.deriving.node import Node
from gradsmith.deriving.printing import Printer, Statement
from gradsmith.deriving.refusal import Refused
from gradsmith.deriving.saving import draws, read_by
from gradsmith.deriving.wrapping import wrapped
from gradsmith.diagnosis.mending.hand import Hand
from gradsmith.source import knowledge as know

_WIDTH = 104  # with the indentation of a method
_MODULES = {"torch": torch, "F": torch.nn.functional, "math": math}


@dataclass
class Lines:
    """`statements` compute the gradients named in `final`; forward has to keep `saved` and `attributes` in addition."""

    statements: list[Statement]
    final: dict[Node, str]
    saved: list[Node] = field(default_factory=list)
    attributes: dict[str, str] = field(default_factory=dict)  # of ctx: what is stored there
    numbers: list[str] = field(default_factory=list)  # of those, what backward takes out under the same name
    modules: list[str] = field(default_factory=list)  # that the file has to import


def lines_for(found: Swept, wanted: Sequence[Node], hand: Hand, names: Mapping[Node, str], scope: Any) -> Lines:
    """The lines for the gradients of the `wanted` inputs, which are to be called `names`."""
    saved: list[Node] = []
    while True:
        attributes: dict[str, str] = {}

        def outside(node: Node, what: str, kept: dict[str, str] = attributes) -> str:
            bare = what.removesuffix("()")
            attribute = "shape" if bare == "numel" else bare
            kept[f"{node.name}_{attribute}"] = f"{node.name}.{attribute}"
            return f"ctx.{node.name}_{attribute}" + (".numel()" if bare == "numel" else "")

        given = {**hand.names, **{node: str(node.name) for node in saved}}
        inputs = {str(n.name) for n in found.reading.inputs.values()}
        printer = Printer(dict(given), outside, {*hand.taken, *inputs, *names.values()})
        try:
            lines = _printed(found, wanted, printer, names)
        except NotAtHand as missing:
            if missing.node in saved:
                raise
            saved.append(missing.node)
            continue
        numbers = sorted(printer.numbers, key=lambda n: n.serial)
        attributes |= {str(n.name): str(n.name) for n in numbers}
        lines.saved, lines.attributes, lines.numbers = saved, attributes, [str(n.name) for n in numbers]
        absent: set[str] = set()
        lines.statements = [
            replace(
                s,
                text=in_scope(s.text, scope, absent),
                block=tuple(in_scope(line, scope, absent) for line in s.block),
            )
            for s in lines.statements
        ]
        lines.statements = [s if s.block else replace(s, block=_broken(s)) for s in lines.statements]
        lines.modules = sorted(absent)
        return lines


def _broken(statement: Statement) -> tuple[str, ...]:
    """The lines of a statement that is too long for one."""
    lines = wrapped(statement.lines[0], _WIDTH)
    return tuple(lines) if len(lines) > 1 else ()


def _printed(found: Swept, wanted: Sequence[Node], printer: Printer, names: Mapping[Node, str]) -> Lines:
    graph = found.reading.graph
    graph.backward = True
    targets: dict[Node, str] = {}
    final: dict[Node, str] = {}
    aliases: list[tuple[str, Node]] = []
    for node in wanted:
        gradient = found.gradients[node]
        if gradient in printer.names or gradient in targets:
            aliases.append((names[node], gradient))
            final[node] = names[node]
        else:
            targets[gradient] = final[node] = names[node]
    _refuse_draws([found.gradients[n] for n in wanted], printer)
    taken = printer.taken | set(targets.values())
    turns = {n: unique(f"all_{label(n.args[1])}", taken) for n in _turns([found.gradients[n] for n in wanted], printer)}
    statements = printer.statements({**targets, **turns})
    statements += [Statement(name, printer.text(gradient), gradient) for name, gradient in aliases]
    return Lines(statements, final)


def _turns(gradients: list[Node], printer: Printer) -> list[Node]:
    """What a loop of backward needs of every turn of forward: forward's loop runs again for it."""
    return [n for n in _needed(gradients, printer) if n.op == "kept"]


def _refuse_draws(gradients: list[Node], printer: Printer) -> None:
    """A draw that was not saved cannot be drawn again."""
    if any(map(draws, _needed(gradients, printer))):
        raise Refused("backward needs a random draw that forward did not keep.")


def _needed(gradients: list[Node], printer: Printer) -> list[Node]:
    """Every value that is computed on the way to the gradients, from what has a name."""
    seen: dict[Node, None] = {}
    todo = list(gradients)
    while todo:
        node = todo.pop()
        if node in seen or node in printer.names or node.op in know.OUTSIDE:
            continue
        seen[node] = None
        todo += read_by(node)
    return list(seen)


def in_scope(text: str, scope: Mapping[str, Any], absent: set[str] | None = None) -> str:
    """The text with torch, F and math under the names that the user's module has for them; `absent` gets those it lacks."""

    def named(match: re.Match[str]) -> str:
        word = match.group(1)
        if scope.get(word) is _MODULES[word]:
            return f"{word}."
        for name, value in scope.items():
            if value is _MODULES[word] and name.isidentifier():
                return f"{name}."
        if word == "F":
            return f"{in_scope('torch.', scope, absent)}nn.functional."
        if absent is not None and word not in scope:
            absent.add(word)
            return f"{word}."
        raise Refused(f"the module {_MODULES[word].__name__} is not imported.", f"Write `import {word}`.")

    return re.sub(r"(?<![\w.])(torch|F|math)\.", named, text)


def fresh_name(base: str, taken: frozenset[str]) -> str:
    return unique(base, set(taken))
