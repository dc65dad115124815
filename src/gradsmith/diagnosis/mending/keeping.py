"""What forward has to keep in addition, so that backward has it: edits of save_for_backward, of ctx, and of the unpacking."""

from __future__ import annotations

import ast

from gradsmith.deriving.refusal import Refused
from gradsmith.diagnosis.mending.hand import SAVED
from gradsmith.diagnosis.mending.lines import Lines
from gradsmith.diagnosis.mending.own_source import OwnSource
from gradsmith.findings import Edit
from gradsmith.source import edits as make


def kept(source: OwnSource, lines: Lines, count: int) -> list[Edit]:
    """Edits of forward or setup_context for what `lines` needs; `count` tensors are saved so far."""
    method = source.keeper
    ctx = method.args.args[0].arg
    names = [_text(source, str(node.name)) for node in lines.saved]
    attributes = [f"{ctx}.{name} = {_attribute(source, text)}" for name, text in lines.attributes.items()]
    if not names and not attributes:
        return []
    calls = [n for n in ast.walk(method) if isinstance(n, ast.Call) and _saves(n, ctx)]
    if len(calls) > 1 or (calls and any(isinstance(a, ast.Starred) for a in calls[0].args)):
        raise Refused("forward saves tensors in several places.")
    found: list[Edit] = []
    if calls and names:
        if len(calls[0].args) != count:
            raise Refused("what forward saves is not known.")
        found.append(_with_more(source, calls[0], names))
    elif names:
        attributes.insert(0, f"{ctx}.save_for_backward({', '.join(names)})")
    if attributes:
        found.append(_inserted(source, method, attributes, calls[0] if calls else None))
    return found


def imported(source: OwnSource, lines: Lines) -> list[Edit]:
    """`import math`, before the first import of the file that is not of the future."""
    if not lines.modules:
        return []
    kinds = (ast.Import, ast.ImportFrom)
    others = [n for n in source.file.tree.body if isinstance(n, kinds) and getattr(n, "module", "") != "__future__"]
    edit = (
        make.insert_before(source.file, others[0], "\n".join(f"import {m}" for m in lines.modules)) if others else None
    )
    if edit is None:
        raise Refused(f"the file does not import {lines.modules[0]}.")
    return [edit]


def unpacked(source: OwnSource, lines: Lines, count: int) -> tuple[list[Edit], list[str]]:
    """Names for the newly saved tensors in backward: an edit where there is a tuple to be longer, else lines to write."""
    names = [str(node.name) for node in lines.saved]
    if not names or source.backward is None:
        return [], []
    ctx = source.backward.args.args[0].arg
    for statement in source.backward.body:
        if isinstance(statement, ast.Assign) and _unpacks(statement, ctx):
            (target,) = statement.targets
            if isinstance(target, (ast.Tuple, ast.List)) and all(isinstance(e, ast.Name) for e in target.elts):
                own = [e.id for e in target.elts if isinstance(e, ast.Name)]
                return [make.replace(source.file, target, ", ".join([*own, *names]))], []
    return [], [f"{name} = {ctx}.saved_tensors[{count + i}]" for i, name in enumerate(names)]


def _unpacks(statement: ast.Assign, ctx: str) -> bool:
    value = statement.value
    here = isinstance(value, ast.Attribute) and value.attr in SAVED and isinstance(value.value, ast.Name)
    return here and len(statement.targets) == 1 and value.value.id == ctx  # type: ignore[attr-defined]


def _saves(call: ast.Call, ctx: str) -> bool:
    func = call.func
    return (
        isinstance(func, ast.Attribute)
        and func.attr == "save_for_backward"
        and isinstance(func.value, ast.Name)
        and func.value.id == ctx
    )


def _text(source: OwnSource, name: str) -> str:
    """An input, in the method that keeps things: by its name, or from the tuple that setup_context gets."""
    if source.setup is None:
        return name
    bound = {n.id for n in ast.walk(source.setup) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    if name in bound:
        return name
    order = [a.arg for a in source.forward.args.args]
    return f"{source.setup.args.args[1].arg}[{order.index(name)}]"


def _attribute(source: OwnSource, text: str) -> str:
    name, dot, rest = text.partition(".")
    own = _text(source, name)
    if dot and _may_be_none(source.forward, name):
        return f"None if {own} is None else {own}{dot}{rest}"
    return own + dot + rest


def _may_be_none(forward: ast.FunctionDef, name: str) -> bool:
    """Whether forward's signature says so, or forward asks."""
    arguments = forward.args
    plain = [*arguments.posonlyargs, *arguments.args]
    defaults = dict(zip([a.arg for a in reversed(plain)], reversed(arguments.defaults)))
    default = defaults.get(name)
    annotation = next((a.annotation for a in plain if a.arg == name), None)
    told = ast.unparse(annotation) if annotation is not None else ""
    asked = any(
        isinstance(n, ast.Compare)
        and isinstance(n.left, ast.Name)
        and n.left.id == name
        and isinstance(n.ops[0], (ast.Is, ast.IsNot))
        for n in ast.walk(forward)
    )
    return (
        asked or "None" in told or "Optional" in told or (isinstance(default, ast.Constant) and default.value is None)
    )


def _with_more(source: OwnSource, call: ast.Call, names: list[str]) -> Edit:
    if not call.args:
        return make.replace(source.file, call, f"{ast.unparse(call.func)}({', '.join(names)})")
    place = source.file.place(call.args[-1])
    return Edit(place.end_line, place.end_column, place.end_line, place.end_column, "".join(f", {n}" for n in names))


def _inserted(source: OwnSource, method: ast.FunctionDef, lines: list[str], call: ast.Call | None) -> Edit:
    """New lines after the call that saves, else before the return, else at the end."""
    statement = next((s for s in method.body if call is not None and isinstance(s, ast.Expr) and s.value is call), None)
    if statement is not None and (indent := source.indent(statement)) is not None:
        edit = make.insert_after(source.file, statement, f"{source.file.newline}{indent}".join(lines))
        if edit is not None:
            return edit
    last = method.body[-1]
    indent = source.indent(last)
    if indent is None or call is not None:
        raise Refused("forward is not written with one statement in a line.")
    text = f"{source.file.newline}{indent}".join(lines)
    if isinstance(last, ast.Return):
        edit = make.insert_before(source.file, last, text)
    elif isinstance(last, ast.Pass):
        edit = make.replace(source.file, last, text)
    else:
        edit = make.insert_after(source.file, last, text)
    if edit is None:
        raise Refused("forward is not written with one statement in a line.")
    return edit
