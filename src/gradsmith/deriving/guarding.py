"""What the derivation took for granted, as conditions that forward tests."""

from __future__ import annotations

import functools
import math
import random
import re
import types
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import torch

from gradsmith.deriving.expressions import Expressions
from gradsmith.deriving.node import Node
from gradsmith.deriving.reading import Reading
from gradsmith.deriving.refusal import Refused


@dataclass(frozen=True)
class Test:
    """What forward tests: the text that is true where it must raise, and the words of the error."""

    fails: str
    words: str

    def lines(self, name: str) -> list[str]:
        words = self.words.replace("\\", "\\\\").replace('"', "'")
        return [f"if {self.fails}:", f'    raise ValueError("{name}: {words}")']


def test_of(text: str, truth: bool) -> Test:
    """`text` must be as it was when forward was read."""
    if text.count(" == ") == 1 and " and " not in text:
        text, truth = (text, truth) if truth else (text.replace(" == ", " != "), True)
    if not truth:
        return Test(text, f"not derived for {text}")
    if text.count(" != ") == 1 and " and " not in text and " or " not in text:
        return Test(text.replace(" != ", " == "), f"needs {text}")
    opposite = (
        text.replace(" == ", " != ") if text.count(" == ") == 1 else f"not {text}" if _closed(text) else f"not ({text})"
    )
    return Test(opposite, f"needs {text}")


def _closed(text: str) -> bool:
    """Does `not` in front mean the whole?"""
    return " and " not in text and " or " not in text


def of_values(reading: Reading, printer: Expressions) -> list[Test]:
    """Tests of tensors that forward itself makes, in the names that the printer has."""
    asked = [(n, truth) for n, truth in reading.graph.conditions.items() if n.is_tensor]
    return list(dict.fromkeys(test_of(printer.text(node), truth) for node, truth in asked))


def conditions(reading: Reading, level: int, ranks: frozenset[str]) -> list[Test]:
    """Comparisons that decided a branch; then by level: 1 sizes that were taken to be equal, 2 ranks, too, 3 every shape.

    `ranks` names the inputs whose number of dimensions has to be tested; if it is empty, all are."""
    names: dict[Node, str] = {node: name for name, node in reading.inputs.items()}
    printer = Expressions(dict(names))
    found = []
    asked = {node: truth for node, truth in reading.graph.conditions.items() if not node.is_tensor}
    pinned = {node.args[0] for node, truth in asked.items() if truth and _pins(node)}
    for node, truth in asked.items():
        if (truth and _pins(node)) or not set(node.operands) or not set(node.operands) <= pinned:
            found.append(test_of(printer.text(node), truth))
    if level == 3:
        shapes = [test_of(f"{n.name}.shape == {tuple(n.value.shape)}", True) for n in reading.tensors]
        return list(dict.fromkeys(found + shapes))
    sizes = _equal_sizes(reading) if level >= 1 else []
    if level >= 2:
        tested = [n for n in reading.tensors if not ranks or n.name in ranks]
        told = _ranks_told(sizes, [str(n.name) for n in tested])
        found += [test_of(f"{n.name}.dim() == {n.value.ndim}", True) for n in tested if n.name not in told]
    found += [test_of(text, True) for text in sizes]
    return list(dict.fromkeys(found))


def _ranks_told(sizes: list[str], tested: list[str]) -> set[str]:
    """Of the tested inputs those whose number of dimensions follows from that of another: `x.shape[-1:] == weight.shape`."""
    told: set[str] = set()
    for text in sizes:
        found = re.fullmatch(r"(\w+)\.shape(\[-\d+:\])? == (\w+)\.shape", text)
        if found and found[1] in tested and found[1] not in told:
            told.add(found[3])
    return told


def _pins(node: Node) -> bool:
    """Is this `n == 1`, so that whatever else is asked of n is known?"""
    return node.op == "eq" and isinstance(node.args[0], Node) and not isinstance(node.args[1], Node)


def _equal_sizes(reading: Reading) -> list[str]:
    """`x.shape[-1:] == weight.shape`: the sizes of two inputs that met in a broadcast, told as shortly as they can be."""
    roots: dict[Any, Any] = {}

    def root(size: Any) -> Any:
        while size in roots:
            size = roots[size]
        return size

    sizes = {d for n in reading.tensors for d in n.dims if isinstance(d, Node)}
    for met in reading.graph.trusted:
        own = [m for m in met if m in sizes]
        for other in own[1:]:
            if root(other) is not root(own[0]):
                roots[root(other)] = root(own[0])
    found: list[str] = _of_expressions(reading, sizes)
    before: list[Node] = []
    for tensor in [t for t in reading.tensors if t.dims]:
        whole = next((b for b in before if _all_equal(b, tensor, root)), None)
        if whole is not None:
            big, small = sorted((whole, tensor), key=lambda t: -len(t.dims))
            rank = len(small.dims)
            cut = "" if rank == len(big.dims) else f"[-{rank}:]"
            found.append(f"{big.name}.shape{cut} == {small.name}.shape")
        else:
            for i, d in enumerate(tensor.dims):
                hits = [(b, j) for b in before for j, e in enumerate(b.dims) if e is not d and root(e) is root(d)]
                if hits:
                    other, j = hits[0]
                    found.append(
                        f"{other.name}.shape[{j - len(other.dims)}] == {tensor.name}.shape[{i - len(tensor.dims)}]"
                    )
        before.append(tensor)
    return found


def _of_expressions(reading: Reading, sizes: set[Node]) -> list[str]:
    """`c.shape[-1] == weight.shape[0] // 4`: a size of an input that met one that was computed."""
    printer = Expressions({node: name for name, node in reading.inputs.items()})
    found = []
    for met in reading.graph.trusted:
        own = [m for m in met if m in sizes]
        others = [m for m in met if isinstance(m, Node) and m not in sizes]
        if len(own) == 1 and others:
            with suppress(Refused):
                found.append(f"{printer.text(own[0])} == {printer.text(others[0])}")
    return [text for text in found if not _always(text, reading)]


def _always(text: str, reading: Reading) -> bool:
    """Is the comparison true whatever the sizes are?"""
    draw = random.Random(0)
    for _ in range(3):
        scope: dict[str, Any] = {name: node.value for name, node in reading.inputs.items()}
        for node in reading.tensors:
            sizes = tuple(draw.randrange(12, 4000) for _ in node.dims)
            scope[str(node.name)] = types.SimpleNamespace(shape=sizes, numel=functools.partial(math.prod, sizes))
        try:
            if not eval(text, {"math": math, "torch": torch}, scope):  # sizes of inputs, as we have printed them
                return False
        except Exception:  # it asks for more than sizes
            return False
    return True


def _all_equal(a: Node, b: Node, root: Any) -> bool:
    short = min(len(a.dims), len(b.dims))
    pairs = list(zip(a.dims[-short:], b.dims[-short:]))
    return bool(pairs) and all(p is not q and root(p) is root(q) for p, q in pairs)
