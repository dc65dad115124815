"""Derived lines in the place of wrong ones: first for the wrong gradients only, then for the whole of backward."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gradsmith.deriving.deriving import Swept
from gradsmith.deriving.naming import unique
from gradsmith.deriving.node import Node
from gradsmith.deriving.refusal import Refused
from gradsmith.diagnosis.mending.dead import unread
from gradsmith.diagnosis.mending.hand import at_hand, grad_names
from gradsmith.diagnosis.mending.keeping import imported, kept, unpacked
from gradsmith.diagnosis.mending.lines import Lines, fresh_name, lines_for
from gradsmith.diagnosis.mending.own_source import OwnSource
from gradsmith.diagnosis.mending.whole import whole
from gradsmith.findings import Edit
from gradsmith.source import edits as make
from gradsmith.source.edited import names_in


@dataclass(frozen=True)
class Rewrite:
    """Edits that put derived lines into the class; `gradients` names the inputs whose gradient they compute."""

    edits: tuple[Edit, ...]
    gradients: tuple[str, ...]
    line: int


def rewrites(source: OwnSource, found: Swept, wrong: Sequence[str]) -> Iterator[Rewrite]:
    """The smallest first. What cannot be written is left out."""
    everything = [str(n.name) for n in found.gradients]
    wanted = [name for name in everything if name in wrong]
    looped = any(n.op == "loopback" for n in found.reading.graph.pool.values())
    # Where every gradient is new, a loop that computed the old ones would stay behind.
    for make_one in (whole, _partial) if looped and len(wanted) == len(everything) else (_partial, whole):
        try:
            made = make_one(source, found, wanted or everything)
        except (Refused, ValueError, KeyError, IndexError):
            continue
        if made is not None:
            edits, line = made
            yield Rewrite(tuple(edits), tuple(wanted if make_one is _partial else everything), line)


def _partial(source: OwnSource, found: Swept, wanted: Sequence[str]) -> tuple[list[Edit], int] | None:
    backward = source.backward
    if backward is None:
        return None
    returns = [n for n in ast.walk(backward) if isinstance(n, ast.Return)]
    grads = grad_names(backward)
    if len(returns) != 1 or returns[0] is not backward.body[-1] or grads is None:
        return None
    (last,) = returns
    slots = _slots(source, found, last)
    if slots is None or not all(name in slots for name in wanted):
        return None
    inputs = {str(n.name): n for n in found.gradients}
    site = _assigned(backward, slots[wanted[0]]) if len(wanted) == 1 else None
    if site is not None:
        return _at_assignment(source, found, inputs[wanted[0]], site, grads)
    return _at_return(source, found, [inputs[name] for name in wanted], last, slots, grads)


def _slots(source: OwnSource, found: Swept, last: ast.Return) -> dict[str, ast.expr] | None:
    """What is returned for each argument of forward."""
    names = list(found.reading.signature.parameters)
    if isinstance(last.value, ast.Tuple):
        if any(isinstance(e, ast.Starred) for e in last.value.elts) or len(last.value.elts) < len(names):
            return None
        return dict(zip(names, last.value.elts))
    plain = len(names) == 1 and last.value is not None and not isinstance(last.value, ast.Starred)
    return {names[0]: last.value} if plain and last.value is not None else None


def _assigned(backward: ast.FunctionDef, slot: ast.expr) -> ast.Assign | None:
    """The one statement that computes what is returned here, where there is one and nothing writes into it later."""
    if not isinstance(slot, ast.Name):
        return None
    parameters = {a.arg for a in backward.args.args}
    writes: list[ast.stmt] = []
    for node in ast.walk(backward):
        if isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.For, ast.With)):
            targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
            if any(isinstance(n, ast.Name) and n.id == slot.id for t in targets if t for n in ast.walk(t)):
                writes.append(node)
    real = [w for w in writes if not (isinstance(w, ast.Assign) and _is_none(w.value))]
    if len(real) != 1 or slot.id in parameters or not isinstance(real[0], ast.Assign):
        return None
    alone = len(real[0].targets) == 1 and isinstance(real[0].targets[0], ast.Name)
    looped = any(isinstance(n, (ast.For, ast.While)) and real[0] in ast.walk(n) for n in ast.walk(backward))
    return real[0] if alone and not looped else None


def _is_none(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and value.value is None


def _at_assignment(
    source: OwnSource, found: Swept, node: Node, site: ast.Assign, grads: list[str]
) -> tuple[list[Edit], int] | None:
    backward, target = source.backward, site.targets[0]
    assert backward is not None and isinstance(target, ast.Name)
    indent = source.indent(site)
    if indent is None:
        return None
    hand = at_hand(found, backward, _untouched(backward, grads, site.lineno), site.lineno)
    lines = lines_for(found, [node], hand, {node: target.id}, source.scope)
    more, first = _kept(source, found, lines)
    text = [*first, *(line for s in lines.statements for line in s.lines)]
    place = source.file.place(site)
    new = f"{source.file.newline}{indent}".join(text)
    words = frozenset(w for s in lines.statements for w in s.uses)
    gone = unread(backward, [site], words)
    edits = [Edit(place.line, place.column, place.end_line, place.end_column, new), *_deleted(source, gone), *more]
    return edits, site.lineno


def _at_return(
    source: OwnSource,
    found: Swept,
    nodes: list[Node],
    last: ast.Return,
    slots: dict[str, ast.expr],
    grads: list[str],
) -> tuple[list[Edit], int] | None:
    backward = source.backward
    assert backward is not None
    indent = source.indent(last)
    if indent is None:
        return None
    hand = at_hand(found, backward, _untouched(backward, grads, last.lineno), last.lineno)
    taken = set(hand.taken)
    names: dict[Node, str] = {}
    for node in nodes:
        slot = slots[str(node.name)]
        own = isinstance(slot, ast.Name) and slot.id not in grads and slot.id not in hand.names.values()
        names[node] = slot.id if own and isinstance(slot, ast.Name) else unique(f"grad_{node.name}", taken)
    lines = lines_for(found, nodes, hand, names, source.scope)
    more, first = _kept(source, found, lines)
    inline = {}
    if len(lines.statements) == 1 and len(nodes) == 1 and not lines.statements[0].block:
        inline = {nodes[0]: lines.statements.pop().text}
    gone: list[ast.AST] = [slots[str(node.name)] for node in nodes]
    words = frozenset(w for s in lines.statements for w in s.uses) | frozenset(names.values())
    words |= frozenset(w for text in inline.values() for w in names_in(text))
    edits = [
        make.replace(source.file, slots[str(node.name)], inline.get(node, lines.final[node]))
        for node in nodes
        if not _says(slots[str(node.name)], inline.get(node, lines.final[node]))
    ]
    text = [*first, *(line for s in lines.statements for line in s.lines)]
    if text:
        edit = make.insert_before(source.file, last, f"{source.file.newline}{indent}".join(text))
        if edit is None:
            return None
        edits.append(edit)
    overwritten = {lines.final[node] for node in nodes} if not inline else set()
    dead = unread(backward, gone, words - overwritten)
    return [*edits, *_deleted(source, dead), *more], last.lineno


def _says(slot: ast.expr, text: str) -> bool:
    return isinstance(slot, ast.Name) and slot.id == text


def _untouched(backward: ast.FunctionDef, grads: list[str], before: int) -> list[str]:
    """The gradients of the outputs, none of which may mean something else by now."""
    rebound = {
        n.id
        for n in ast.walk(backward)
        if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store) and n.lineno < before
    }
    if rebound & set(grads):
        raise Refused("backward gives the name of a grad_output to something else.")
    return grads


def _kept(source: OwnSource, found: Swept, lines: Lines) -> tuple[list[Edit], list[str]]:
    """Edits elsewhere, and the lines that take out of ctx what is kept there from now on."""
    count = len(found.reading.kept.saved) if found.reading.kept is not None else 0
    edits, first = unpacked(source, lines, count)
    ctx = source.backward.args.args[0].arg if source.backward is not None else "ctx"
    return [*kept(source, lines, count), *edits, *imported(source, lines)], [
        *first,
        *(f"{name} = {ctx}.{name}" for name in lines.numbers),
    ]


def _deleted(source: OwnSource, statements: Sequence[ast.stmt]) -> list[Edit]:
    found = []
    for statement in statements:
        end = statement.end_lineno or statement.lineno
        rest = source.file.lines[end - 1][source.file.place(statement).end_column :].strip()
        if source.indent(statement) is not None and (not rest or rest.startswith("#")):
            found.append(Edit(statement.lineno, 0, end + 1, 0, ""))
    return found


__all__ = ["Rewrite", "fresh_name", "rewrites"]
