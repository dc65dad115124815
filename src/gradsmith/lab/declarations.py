"""What a user declared about a gradient: by decorator, or by a comment in the source, read as lint reads it."""

from __future__ import annotations

import ast
import inspect
import linecache
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gradsmith.lab.target import Target, where
from gradsmith.source import FileModel, qualnames
from gradsmith.source.declared import Definition, written_at
from gradsmith.surrogate_kinds import SURROGATE

ATTRIBUTE = "__gradsmith_surrogate__"


@dataclass(frozen=True)
class Declaration:
    """The gradient is meant to be a surrogate of this kind, or an approximation, or (neither) exact."""

    surrogate: str | None = None
    approximate: bool = False
    like: Callable[..., Any] | None = None


def declaration_of(target: Target) -> Declaration:
    """What stands at the subject, else at the nearest class it derives from."""
    for part in _parts(target):
        stated = vars(part).get(ATTRIBUTE) if hasattr(part, "__dict__") else None
        if isinstance(stated, Declaration):
            return stated
        if (found := _in_comment(part)) is not None:
            return found
    return Declaration()


def _parts(target: Target) -> Iterator[Any]:
    """The classes of a Function, or a custom op and the functions it is made of."""
    if target.function is not None:
        yield from (cls for cls in target.function.__mro__ if not cls.__module__.startswith(("torch.", "builtins")))
        return
    yield target.original
    if target.kind == "custom_op":
        yield from filter(None, (getattr(target.original, name, None) for name in ("_init_fn", "_backward_fn")))


def _in_comment(part: Any) -> Declaration | None:
    path, line = where(part) if inspect.isclass(part) or inspect.isfunction(part) else (None, None)
    if path is None:
        return None
    file = FileModel(path, _text(path))
    if not file.comments.declared:
        return None
    try:
        nodes = list(_definitions(file, part))
    except SyntaxError:  # the file is being edited
        return None
    # Of several with one name the one that was loaded, as far as Python knows, else the last.
    node = next((n for n in nodes if n.lineno == line), nodes[-1] if nodes else None)
    written = written_at(file, node) if node is not None else None
    if written is None:
        return None
    if written.gradient == "approximate":
        return Declaration(approximate=True)
    return Declaration(surrogate=written.kind or SURROGATE)


def _text(path: str) -> str:
    """The text of a file, or of a notebook cell or other text that was compiled under this name."""
    if Path(path).is_file():
        linecache.checkcache(path)
    return "".join(linecache.getlines(path))


def _definitions(file: FileModel, part: Any) -> Iterator[Definition]:
    for node in ast.walk(file.tree):
        if inspect.isclass(part) and isinstance(node, ast.ClassDef):
            if node.name == part.__name__ and qualnames.of_class(file, node) == part.__qualname__:
                yield node
        elif inspect.isfunction(part) and isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            begins = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            if node.name == part.__name__ and begins == part.__code__.co_firstlineno:
                yield node
