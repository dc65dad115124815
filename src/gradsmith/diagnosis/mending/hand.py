"""What a backward has at hand, as text: gradients of outputs, saved tensors, attributes of ctx, and the names it gave them."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from gradsmith.deriving.deriving import Swept
from gradsmith.deriving.node import Node

SAVED = ("saved_tensors", "saved_variables")


@dataclass(frozen=True)
class Hand:
    """`names`: what each value is called. `taken`: names that a new line must not give to something else."""

    names: dict[Node, str]
    taken: frozenset[str]
    unpacked: dict[int, str] = field(default_factory=dict)  # number of a saved tensor -> its name


def grad_names(backward: ast.FunctionDef) -> list[str] | None:
    """What backward calls the gradients of the outputs; None for `*grads`, which may be of any number."""
    arguments = backward.args
    if arguments.vararg is not None or arguments.kwonlyargs:
        return None
    return [a.arg for a in (*arguments.posonlyargs, *arguments.args)][1:]


def at_hand(found: Swept, backward: ast.FunctionDef | None, grads: list[str], before: int | None) -> Hand:
    """What can be written in backward before line `before` (None: in place of its whole body)."""
    ctx = backward.args.args[0].arg if backward is not None and backward.args.args else "ctx"
    kept = found.reading.kept
    names: dict[Node, str] = {}
    for leaf in found.grads.values():
        index = leaf.args[1]
        leaf.name = names[leaf] = grads[index] if index < len(grads) else str(leaf.name)
    local = dict(_locals(backward, ctx, before)) if backward is not None and before is not None else {}
    unpacked = {i: name for (what, i), name in local.items() if what == ctx and isinstance(i, int)}
    for i, node in enumerate(kept.saved if kept is not None else ()):
        if isinstance(node, Node):
            names.setdefault(node, unpacked.get(i, f"{ctx}.saved_tensors[{i}]"))
    for attribute, value in (kept.attributes if kept is not None else {}).items():
        text = local.get((ctx, attribute), f"{ctx}.{attribute}")
        if isinstance(value, Node):
            names.setdefault(value, text)
        elif isinstance(value, tuple) and value:
            names |= _shape(found, value, text)
    taken = {n.id for n in ast.walk(backward) if isinstance(n, ast.Name)} if backward is not None else set()
    return Hand(names, frozenset({*taken, *grads, ctx}), unpacked)


def _shape(found: Swept, value: tuple[object, ...], text: str) -> dict[Node, str]:
    """A tuple of sizes that is the shape of an input."""
    graph = found.reading.graph
    for node in found.reading.tensors:
        if len(node.dims) == len(value) and all(graph.same(a, b) for a, b in zip(node.dims, value)):
            return {graph.shape_of(node): text}
    return {}


def _locals(backward: ast.FunctionDef, ctx: str, before: int) -> Iterator[tuple[tuple[str, int | str], str]]:
    """Names given once, to what ctx holds, at the top of backward: (ctx, 0) is its first saved tensor."""
    stores = Counter(n.id for n in ast.walk(backward) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load))
    for statement in backward.body:
        if not isinstance(statement, ast.Assign) or statement.lineno >= before or len(statement.targets) != 1:
            continue
        for target, value in _pairs(statement.targets[0], statement.value, ctx):
            if stores[target] == 1:
                yield (ctx, value), target


def _pairs(target: ast.expr, value: ast.expr, ctx: str) -> Iterator[tuple[str, int | str]]:
    several = target.elts if isinstance(target, (ast.Tuple, ast.List)) else None
    if _is_saved(value, ctx):
        for i, each in enumerate(several or ()):
            if isinstance(each, ast.Starred):
                return
            if isinstance(each, ast.Name):
                yield each.id, i
        return
    if several is not None and isinstance(value, ast.Tuple) and len(several) == len(value.elts):
        for inner, part in zip(several, value.elts):
            yield from _pairs(inner, part, ctx)
    if not isinstance(target, ast.Name):
        return
    if isinstance(value, ast.Subscript) and _is_saved(value.value, ctx):
        if isinstance(value.slice, ast.Constant) and isinstance(value.slice.value, int) and value.slice.value >= 0:
            yield target.id, value.slice.value
    elif isinstance(value, ast.Attribute) and isinstance(value.value, ast.Name) and value.value.id == ctx:
        yield target.id, value.attr


def _is_saved(value: ast.expr, ctx: str) -> bool:
    return (
        isinstance(value, ast.Attribute)
        and value.attr in SAVED
        and isinstance(value.value, ast.Name)
        and value.value.id == ctx
    )
