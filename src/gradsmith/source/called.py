"""What the functions that a method calls write into: `reduce(grad_output)`, where `reduce` is `all_reduce(t); return t`."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from gradsmith.source.annotations import TENSOR
from gradsmith.source.behind import body_called
from gradsmith.source.memory import Write
from gradsmith.source.walk import nodes_under

if TYPE_CHECKING:
    from gradsmith.source.memory import Owner
    from gradsmith.source.method import Method

_DEPTH = 3
# `x.add_(`, `x[i] =`, `x +=`, `out=`, `inplace=True`, a collective: a text without any of it writes nowhere.
_MAY_WRITE = re.compile(r"_\(|\]\s*[^\s=(]{0,2}=[^=]|[-+*/@&|^%]=|out=|inplace|reduce|broadcast|scatter|gather|copy")
# Any other decorator may call something else, or declare the write (`custom_op(mutates_args=...)`).
_PLAIN = frozenset(("staticmethod", "no_grad", "inference_mode", "script", "compile", "jit_fuser"))


def writes_by_calls(method: Method, owners: Sequence[Owner], depth: int = 0) -> Iterator[Write]:
    """One Write for each call of a function of this file that certainly writes into what it is handed.

    Only arguments count that are somebody else's memory (`owners`). A write that hangs on a flag which is handed in,
    too (`if inplace:`), does not.
    """
    for call in method.of(ast.Call):
        # Whether the function stands here at all is the quick question; nearly all are torch's.
        if not _may_stand_here(method, call.func) or any(isinstance(a, ast.Starred) for a in call.args):
            continue
        given: list[tuple[int | str, ast.expr]] = [*enumerate(call.args)]
        given += [(k.arg, k.value) for k in call.keywords if k.arg is not None]
        ours = [(at, a) for at, a in given if any(s.owner in owners and s.certain for s in method.sources(a))]
        body = body_called(method, call.func) if ours else None
        if body is None or body is method.node:
            continue
        yield from _written(method, call, body, ours, depth)


def _written(
    method: Method, call: ast.Call, body: ast.FunctionDef, ours: list[tuple[int | str, ast.expr]], depth: int
) -> Iterator[Write]:
    from gradsmith.source.method import Method, read_params
    from gradsmith.source.model import decorator_names

    decorators = decorator_names(body, method.file)
    if len(decorators) < len(body.decorator_list) or any(d.rpartition(".")[2] not in _PLAIN for d in decorators):
        return
    params = read_params(body, 0, "input", method.file)
    names = [p.name for p in params if p.kind == "positional"]
    handed = {(names[at] if at < len(names) else "") if isinstance(at, int) else at: a for at, a in ours}
    typed = [replace(p, declared=TENSOR) if p.name in handed and p.declared.kind == "unknown" else p for p in params]
    inside = Method(body.name, body, method.file, "function", None, typed, decorators)
    deeper = writes_by_calls(inside, ("input",), depth + 1) if depth < _DEPTH else ()
    done: set[str] = set()
    own = inside.writes if _MAY_WRITE.search(method.file.source_of(body)) else ()
    for write in (*own, *deeper):
        into = {s.name for s in inside.sources(write.target) if s.owner == "input" and s.certain} & handed.keys() - done
        if into and not inside.in_nested_function(write.node) and not _is_asked_for(inside, write.node, into):
            done |= into
            how = f"{body.name}(...)`, which does `{write.how}"
            yield from (Write(call, handed[name], how, method.statement(call)) for name in sorted(into))


def _may_stand_here(method: Method, func: ast.expr) -> bool:
    if isinstance(func, ast.Name):
        file = method.file
        return func.id not in file.imports.names and not hasattr(builtins, func.id) and f"def {func.id}(" in file.text
    around = method.file.parents.get(method.node) if isinstance(func, ast.Attribute) else None
    return isinstance(around, ast.ClassDef) and ast.unparse(func).startswith(f"{around.name}.")


def _is_asked_for(inside: Method, node: ast.AST, into: set[str]) -> bool:
    """`if inplace:` with `inplace` handed in: whether it happens is the caller's choice."""
    others = {p.name for p in inside.params} - into
    tested = [n for guard in inside.guards(node) for n in nodes_under(guard.test)]
    flags = [n for n in tested if isinstance(n, ast.Name) and n.id in others]
    return any(not isinstance(inside.file.parents.get(n), (ast.Attribute, ast.Call)) for n in flags)
