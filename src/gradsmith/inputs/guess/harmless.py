"""May a function of the user's be called that nobody asked us to call? Only if its source does nothing but compute."""

from __future__ import annotations

import ast
import builtins
import inspect
import sys
from types import ModuleType
from typing import Any

from gradsmith.source.lexicon import is_a
from gradsmith.source.loaded import definition_of

# Everything else that is imported may reach for files, the network or other processes.
_NUMERIC = frozenset(
    ("torch", "numpy", "math", "cmath", "einops", "functools", "itertools", "operator", "typing", "copy")
)
_BUILTINS = frozenset(dir(builtins)) - {
    "open", "print", "input", "exit", "quit", "exec", "eval", "compile", "__import__", "breakpoint", "setattr", "delattr",
}  # fmt: skip


def only_computes(function: ast.FunctionDef, module: str) -> bool:
    """Whether a function, and every function of its package that it calls, uses nothing but tensors and numbers."""
    waiting, seen = [(function, module)], {(function.name, module)}
    while waiting:
        body, home = waiting.pop()
        if any(isinstance(n, (ast.Global, ast.Nonlocal)) or _imports_more(n) for n in ast.walk(body)):
            return False
        for node in ast.walk(body):
            if not isinstance(node, ast.Call):
                continue
            called = getattr(sys.modules[home], node.func.id, None) if isinstance(node.func, ast.Name) else None
            inner = definition_of(called) if inspect.isfunction(called) and _in_package(called, module) else None
            if inner is None and not _is_harmless(node.func, home):
                return False
            if inner is not None and (inner.name, called.__module__) not in seen:
                seen.add((inner.name, called.__module__))
                waiting.append((inner, called.__module__))
    return True


def _in_package(function: Any, module: str) -> bool:
    return function.__module__ in sys.modules and function.__module__.partition(".")[0] == module.partition(".")[0]


def _imports_more(node: ast.AST) -> bool:
    """`import shutil` inside a function: the module does not know the name, and it is no local value either."""
    if isinstance(node, ast.ImportFrom):
        return node.level > 0 or (node.module or "").partition(".")[0] not in _NUMERIC
    return isinstance(node, ast.Import) and any(a.name.partition(".")[0] not in _NUMERIC for a in node.names)


def _is_harmless(called: ast.expr, module: str) -> bool:
    # Methods of tensors, modules and files that leave traces: training, writing, communicating.
    if isinstance(called, ast.Attribute) and is_a(called.attr, "action"):
        return False
    root = called
    while isinstance(root, (ast.Attribute, ast.Call, ast.Subscript)):
        root = root.func if isinstance(root, ast.Call) else root.value
    if not isinstance(root, ast.Name):
        return True  # a method of what was computed: `(x + 1).sum()`, `"".join(...)`
    known = vars(sys.modules[module])
    if root.id not in known:
        return root.id in _BUILTINS or not hasattr(builtins, root.id)  # a local name, or what Python brings
    value = known[root.id]
    home = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
    return not isinstance(home, str) or home == module or home.partition(".")[0] in _NUMERIC
