"""Who applies a Function in its file: `Fn.apply(x, 3)`, also by another name: `f = Fn.apply` and then `f(x, 3)`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gradsmith.source.walk import once

if TYPE_CHECKING:
    from gradsmith.source.file import FileModel


@dataclass(frozen=True)
class Application:
    """`Fn.apply(...)`, the function it stands in, and the class of that function if it is a method."""

    node: ast.Call
    function: ast.FunctionDef | None
    owner: ast.ClassDef | None


def applications(file: FileModel, name: str) -> list[Application]:
    """Every call of `apply` of the Function of this name, in the order of the file."""
    if not file.uses(name) or not file.parses:
        return []
    return list(_calls(file.tree, name, aliases(file, name), None, None))


def aliases(file: FileModel, name: str) -> frozenset[str]:
    """The names, of variables and attributes, that `apply` of the Function is bound to somewhere in the file."""
    return frozenset(_aliases(file).get(name, ()))


@once
def _aliases(file: FileModel) -> dict[str, set[str]]:
    """For every Function whose `apply` the file gives another name: these names."""
    found: dict[str, set[str]] = {}
    for node in ast.walk(file.tree) if file.parses else ():
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Attribute) and node.value.attr == "apply":
            known_as = {_named(target) for target in node.targets} - {""}
            found.setdefault(_named(node.value.value), set()).update(known_as)
    return found


def applied_in(node: ast.AST, name: str, known_as: frozenset[str] = frozenset()) -> bool:
    """Whether code names `apply` of the Function, to call it or to hand it on, under its own or another name."""
    return any(
        (isinstance(n, ast.Attribute) and _is_apply(n, name))
        or (isinstance(n, (ast.Name, ast.Attribute)) and isinstance(n.ctx, ast.Load) and _named(n) in known_as)
        for n in ast.walk(node)
    )


def _calls(
    node: ast.AST, name: str, known_as: frozenset[str], function: ast.FunctionDef | None, owner: ast.ClassDef | None
) -> Iterator[Application]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Call) and (_is_apply(child.func, name) or _named(child.func) in known_as):
            yield Application(child, function, owner)
        if isinstance(child, ast.ClassDef):
            yield from _calls(child, name, known_as, None, child)
        elif isinstance(child, ast.FunctionDef):
            # Of functions in functions, the outer one is what can be called.
            yield from _calls(child, name, known_as, function or child, owner)
        else:
            yield from _calls(child, name, known_as, function, owner)


def _is_apply(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "apply" and _named(node.value) == name


def _named(node: ast.expr) -> str:
    return str(getattr(node, "id", getattr(node, "attr", "")))
