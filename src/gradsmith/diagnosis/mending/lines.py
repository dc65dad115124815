"""Derived gradients as lines of Python, in terms of what a backward has at hand; what it lacks is to be kept by forward."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from gradsmith.deriving.deriving import Swept
from gradsmith.deriving.naming import unique
from gradsmith.deriving.node import OUTSIDE, Node
from gradsmith.deriving.printing import NotAtHand, Printer, Statement
from gradsmith.deriving.refusal import Refused
from gradsmith.deriving.saving import draws
from gradsmith.diagnosis.mending.hand import Hand

_MODULES = {"torch": torch, "F": torch.nn.functional, "math": math}
_WORD = re.compile(r"[A-Za-z_]\w*")


@dataclass
class Lines:
    """`statements` compute the gradients named in `final`; forward has to keep `saved` and `attributes` in addition."""

    statements: list[Statement]
    final: dict[Node, str]
    saved: list[Node] = field(default_factory=list)
    attributes: dict[str, str] = field(default_factory=dict)  # of ctx: what is stored there
    numbers: list[str] = field(default_factory=list)  # of those, what backward takes out under the same name


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
        lines.statements = [
            Statement(s.name, in_scope(s.text, scope), s.node, frozenset(_WORD.findall(s.text)))
            for s in lines.statements
        ]
        return lines


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
    statements = printer.statements(targets)
    statements += [Statement(name, printer.text(gradient), gradient) for name, gradient in aliases]
    return Lines(statements, final)


def _refuse_draws(gradients: list[Node], printer: Printer) -> None:
    """A draw that was not saved cannot be drawn again."""
    seen: set[Node] = set()
    todo = list(gradients)
    while todo:
        node = todo.pop()
        if node in seen or node in printer.names or node.op in OUTSIDE:
            continue
        seen.add(node)
        if draws(node):
            raise Refused("backward needs a random draw that forward did not keep.")
        todo += node.operands


def in_scope(text: str, scope: Mapping[str, Any]) -> str:
    """The text with torch, F and math under the names that the user's module has for them."""

    def named(match: re.Match[str]) -> str:
        word = match.group(1)
        if scope.get(word) is _MODULES[word]:
            return f"{word}."
        for name, value in scope.items():
            if value is _MODULES[word] and name.isidentifier():
                return f"{name}."
        if word == "F":
            return f"{in_scope('torch.', scope)}nn.functional."
        raise Refused(f"the module {_MODULES[word].__name__} is not imported.", f"Write `import {word}`.")

    return re.sub(r"(?<![\w.])(torch|F|math)\.", named, text)


def fresh_name(base: str, taken: frozenset[str]) -> str:
    return unique(base, set(taken))
