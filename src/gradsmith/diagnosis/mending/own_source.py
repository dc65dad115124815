"""A Function as the user wrote it: where its methods stand, and the same class with some of its text changed."""

from __future__ import annotations

import ast
import inspect
import linecache
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import torch

from gradsmith.findings import Edit
from gradsmith.lab.subject.target import has_setup_context
from gradsmith.source.edited import class_at, parsed_after
from gradsmith.source.edits import apply, indentation
from gradsmith.source.file import FileModel
from gradsmith.source.loaded import model_of

_numbers = count()


@dataclass(frozen=True)
class OwnSource:
    """The class in its file. `backward` is None where the class has none of its own."""

    function: type[torch.autograd.Function]
    file: FileModel
    node: ast.ClassDef
    forward: ast.FunctionDef
    setup: ast.FunctionDef | None
    backward: ast.FunctionDef | None

    @property
    def keeper(self) -> ast.FunctionDef:
        """The method that puts things on ctx."""
        return self.setup or self.forward

    @property
    def attributes(self) -> list[str]:
        """The names under which it puts something on ctx."""
        ctx = self.keeper.args.args[0].arg
        stored = [
            n.attr
            for n in ast.walk(self.keeper)
            if isinstance(n, ast.Attribute)
            and isinstance(n.ctx, ast.Store)
            and isinstance(n.value, ast.Name)
            and n.value.id == ctx
        ]
        return list(dict.fromkeys(stored))

    @property
    def scope(self) -> dict[str, Any]:
        """Every name that the methods can use."""
        inner = inspect.unwrap(self.function.forward)
        return {**getattr(inner, "__globals__", {}), **inspect.getclosurevars(inner).nonlocals}

    def changed(self, edits: Sequence[Edit]) -> type[torch.autograd.Function] | None:
        """The class after the edits, executed where the user's own names are known; None where it cannot be made."""
        tree = parsed_after(self.file.text, edits)
        above = [e for e in edits if e.end_line < self.node.lineno]
        moved = sum(e.replacement.count("\n") - (e.end_line - e.line) for e in above)
        node = class_at(tree, self.node, moved) if tree is not None else None
        if node is None or tree is None:
            return None
        text, path, scope = apply(self.file.text, edits), f"<mended {next(_numbers)} of {self.file.path}>", self.scope
        linecache.cache[path] = (len(text), None, text.splitlines(keepends=True), path)
        known = {ast.unparse(n) for n in self.file.tree.body if isinstance(n, ast.Import)}
        new = [n for n in tree.body if isinstance(n, ast.Import) and ast.unparse(n) not in known]
        try:
            exec(compile(ast.Module([*new, node], []), path, "exec"), scope)
        except Exception:  # the user's own class body runs here
            return None
        made = scope.get(self.node.name)
        fits = isinstance(made, type) and issubclass(made, torch.autograd.Function)
        return made if fits else None

    def indent(self, statement: ast.stmt) -> str | None:
        """The white space before a statement that begins its line; None where something else stands before it."""
        found = indentation(self.file, statement.lineno)
        return found if found is not None and self.file.place(statement).column == len(found) else None


def own_source(function: type[torch.autograd.Function]) -> OwnSource | None:
    """The source of a Function whose methods stand in its own class; None where that is not so, or nobody knows its text."""
    model = model_of(function)
    if model is None:
        return None
    node = model.node
    if not isinstance(node, ast.ClassDef):
        return None
    methods = {n.name: n for n in node.body if isinstance(n, ast.FunctionDef)}
    forward = methods.get("forward")
    setup = methods.get("setup_context")
    if forward is None or (has_setup_context(function) and setup is None):
        return None
    inherits = any("backward" in vars(base) or "vjp" in vars(base) for base in _users(function.__mro__[1:]))
    backward = methods.get("backward")
    if backward is None and ("vjp" in methods or "backward" in vars(function) or inherits):
        return None
    return OwnSource(function, model.file, node, forward, setup, backward)


def _users(classes: Sequence[type]) -> Iterator[type]:
    return (c for c in classes if not c.__module__.startswith(("torch.", "builtins")))
