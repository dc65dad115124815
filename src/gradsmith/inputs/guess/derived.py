"""Classes that complete another one: of a base whose methods only raise, an instance is good for nothing."""

from __future__ import annotations

import ast
import contextlib
import importlib
import inspect
import sys
from pathlib import Path

from gradsmith.source.loaded import definition_of, file_named

_MOST = 8  # files that are loaded
_DEFINES = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef, ast.Assign, ast.AnnAssign)


def is_unwritten(cls: type) -> bool:
    """Whether a class leaves some method to those derived from it: its body only raises NotImplementedError.

    >>> import io
    >>> is_unwritten(io.StringIO)
    False
    """
    methods = (value for name, value in inspect.getmembers(cls, inspect.isfunction) if not name.startswith("__"))
    return any(_only_raises(method) for method in methods if method.__module__.partition(".")[0] != "torch")


def _only_raises(method: object) -> bool:
    node = definition_of(method)
    body = [s for s in node.body if not _is_text(s)] if node is not None else []
    raised = body[0].exc if len(body) == 1 and isinstance(body[0], ast.Raise) else None
    name = raised.func if isinstance(raised, ast.Call) else raised
    return isinstance(name, ast.Name) and name.id == NotImplementedError.__name__


def load_derived(cls: type) -> None:
    """Import the files beside the one of `cls` that derive a class from it and do nothing but define things."""
    module = sys.modules.get(cls.__module__)
    path = Path(getattr(module, "__file__", None) or "")
    package = cls.__module__.rpartition(".")[0]
    if not path.is_file() or not package:
        return
    beside = [p for p in sorted(path.parent.glob("*.py")) if p.stem != "__init__" and _derives(p, cls.__name__)]
    for file in beside[:_MOST]:
        with contextlib.suppress(Exception):  # the user's file, which may need what is not installed
            importlib.import_module(f"{package}.{file.stem}")


def _derives(path: Path, base: str) -> bool:
    file = file_named(str(path))
    if file is None or base not in file.text or not file.parses:
        return False
    body = file.tree.body
    bases = [ast.unparse(b).rpartition(".")[2] for s in body if isinstance(s, ast.ClassDef) for b in s.bases]
    return base in bases and all((isinstance(s, _DEFINES) and not _calls_something(s)) or _is_text(s) for s in body)


def _calls_something(statement: ast.stmt) -> bool:
    """`model = build()`: whoever imports it runs code of the user's that nobody asked for."""
    assigns = isinstance(statement, (ast.Assign, ast.AnnAssign))
    return assigns and any(isinstance(node, ast.Call) for node in ast.walk(statement))


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
