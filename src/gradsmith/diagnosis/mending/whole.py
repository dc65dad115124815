"""A whole backward: in place of the body of the old one, or as a new method where there is none."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Sequence

from gradsmith.deriving.deriving import Swept
from gradsmith.deriving.naming import unique
from gradsmith.deriving.node import Node
from gradsmith.deriving.printing import Statement, serving
from gradsmith.deriving.refusal import Refused
from gradsmith.diagnosis.mending.hand import Hand, at_hand, grad_names
from gradsmith.diagnosis.mending.keeping import imported, kept
from gradsmith.diagnosis.mending.lines import Lines, in_scope, lines_for
from gradsmith.diagnosis.mending.own_source import OwnSource
from gradsmith.findings import Edit

_WORD = re.compile(r"[A-Za-z_]\w*")


def whole(source: OwnSource, found: Swept, wanted: Sequence[str]) -> tuple[list[Edit], int]:
    """Edits that write all gradients anew; the line is that of the old body, or of the class."""
    backward = source.backward
    grads = grad_names(backward) if backward is not None else [str(g.name) for g in found.grads.values()]
    if grads is None or len(grads) != len(found.reading.outputs):
        raise Refused("backward does not name the gradients of its outputs.")
    ctx = backward.args.args[0].arg if backward is not None else "ctx"
    hand, saved = _named(found, at_hand(found, backward, grads, None), source)
    nodes = list(found.gradients)
    taken = {*grads, ctx, *saved}
    names = {node: unique(f"grad_{node.name}", taken) for node in nodes}
    lines = lines_for(found, nodes, hand, names, source.scope)
    count = len(saved)
    more = [*kept(source, lines, count), *imported(source, lines)]
    body = _body(found, lines, saved, ctx, _filled(source, found, hand, ctx))
    if backward is None:
        return [_new_method(source, grads, body), *more], source.node.lineno
    return [_new_body(source, backward, body), *more], backward.body[0].lineno


def _named(found: Swept, hand: Hand, source: OwnSource) -> tuple[Hand, list[str]]:
    """Names for the saved tensors: those of the old backward, else those of forward."""
    kept_by_forward = found.reading.kept.saved if found.reading.kept is not None else ()
    last = source.backward.body[-1].lineno + 1 if source.backward is not None else None
    old = at_hand(found, source.backward, list(_grads(found)), last).unpacked if last is not None else {}
    names = dict(hand.names)
    taken = set(_grads(found))
    saved = []
    for i, node in enumerate(kept_by_forward):
        known = isinstance(node, Node)
        name = unique(old.get(i) or (str(node.name) if known and node.name else f"saved{i}"), taken)
        saved.append(name)
        if known:
            names[node] = name
    return Hand(names, frozenset({*_grads(found), *saved, "ctx"})), saved


def _grads(found: Swept) -> list[str]:
    return [str(g.name) for g in found.grads.values()]


def _filled(source: OwnSource, found: Swept, hand: Hand, ctx: str) -> list[tuple[str, str]]:
    """Where forward asks for None instead of zeros, the lines that make zeros: (name, expression)."""
    calls = [n for n in ast.walk(source.keeper) if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute)]
    if not any(c.func.attr == "set_materialize_grads" for c in calls if isinstance(c.func, ast.Attribute)):
        return []
    filled = []
    for output, leaf in found.grads.items():
        alike = [name for node, name in hand.names.items() if node is output or _shaped(node, output)]
        if not alike:
            raise Refused("the shape of an output is not at hand.")
        filled.append((str(leaf.name), in_scope(f"torch.zeros_like({alike[0]})", source.scope)))
    return filled


def _shaped(node: Node, like: Node) -> bool:
    graph = node.graph
    alike = node.is_tensor and node.op != "grad" and node.value.dtype == like.value.dtype
    return alike and len(node.dims) == len(like.dims) and all(graph.same(a, b) for a, b in zip(node.dims, like.dims))


def _body(found: Swept, lines: Lines, saved: list[str], ctx: str, filled: list[tuple[str, str]]) -> list[str]:
    words = {w for s in lines.statements for w in s.uses} | {w for _, text in filled for w in _WORD.findall(text)}
    names = [*saved, *(str(n.name) for n in lines.saved)]
    body = []
    if words & set(names):
        shown = [name if name in words else "_" for name in names]
        body.append(", ".join(shown) + ("," if len(shown) == 1 else "") + f" = {ctx}.saved_tensors")
        if len(shown) == 1:
            body[-1] = f"({shown[0]},) = {ctx}.saved_tensors"
    body += [f"{name} = {ctx}.{name}" for name in lines.numbers]
    for name, text in filled:
        body += [f"if {name} is None:", f"    {name} = {text}"]
    parameters = list(found.reading.signature.parameters)
    slots = {str(node.name): name for node, name in lines.final.items()}
    returned = [slots.get(name, "None") for name in parameters]
    if len(returned) == 1:
        *first, last = lines.statements
        body += _lines(first)
        return [*body, *last.lines, f"return {returned[0]}"] if last.block else [*body, f"return {last.text}"]
    several = len(lines.final) > 1
    body += _guarded(lines, [slots.get(p) for p in parameters], ctx) if several else _lines(lines.statements)
    return [*body, f"return {', '.join(returned)}"]


def _lines(statements: Iterable[Statement]) -> list[str]:
    return [line for s in statements for line in s.lines]


def _guarded(lines: Lines, slots: list[str | None], ctx: str) -> list[str]:
    """What serves one gradient alone is computed only if that one is asked for."""
    final = list(lines.final.values())
    served = serving(lines.statements, final)
    body = _lines(s for s, names in served if len(names) > 1)
    guarded: list[str] = []
    for i, name in enumerate(slots):
        own = _lines(s for s, names in served if name is not None and names == {name})
        if own and name is not None:
            guarded.append(name)
            body += [f"if {ctx}.needs_input_grad[{i}]:", *(f"    {line}" for line in own)]
    return [" = ".join(guarded) + " = None", *body] if guarded else body


def _new_body(source: OwnSource, backward: ast.FunctionDef, body: list[str]) -> Edit:
    statements = backward.body
    documented = ast.get_docstring(backward, clean=False) is not None
    rest = statements[1:] if documented else statements
    newline = source.file.newline
    if not rest:
        place, indent = source.file.place(statements[-1]), source.indent(statements[-1])
        if indent is None:
            raise Refused("backward is written in one line.")
        return Edit(
            place.end_line, place.end_column, place.end_line, place.end_column,
            newline + newline.join(f"{indent}{line}" for line in body),
        )  # fmt: skip
    first, last = source.file.place(rest[0]), source.file.place(rest[-1])
    indent = source.indent(rest[0])
    if indent is None:  # `def backward(ctx, g): return g`
        outer = source.file.lines[backward.lineno - 1]
        indent = outer[: len(outer) - len(outer.lstrip())] + "    "
        new = newline + newline.join(f"{indent}{line}" for line in body)
        column = len(source.file.lines[first.line - 1][: first.column].rstrip())
        return Edit(first.line, column, last.end_line, last.end_column, new)
    new = f"{newline}{indent}".join(body)
    return Edit(first.line, first.column, last.end_line, last.end_column, new)


def _new_method(source: OwnSource, grads: list[str], body: list[str]) -> Edit:
    """After setup_context, or after forward."""
    after = source.setup or source.forward
    outer = source.file.lines[after.lineno - 1]
    indent = outer[: len(outer) - len(outer.lstrip())]
    newline = source.file.newline
    lines = ["", f"{indent}@staticmethod", f"{indent}def backward(ctx, {', '.join(grads)}):"]
    lines += [f"{indent}    {line}" for line in body]
    end = source.file.place(after)
    rest = source.file.lines[end.end_line - 1]
    return Edit(end.end_line, len(rest), end.end_line, len(rest), newline + newline.join(lines))
