"""May a function of the user's be called that nobody asked us to call? Only if its source does nothing but compute."""

from __future__ import annotations

import ast
import builtins
import sys
from types import ModuleType

from gradsmith.source.lexicon import is_a
from gradsmith.source.loaded import file_of

# Everything else that is imported may reach for files, the network or other processes.
_NUMERIC = frozenset(
    ("torch", "numpy", "math", "cmath", "einops", "functools", "itertools", "operator", "typing", "copy")
)
_BUILTINS = frozenset(dir(builtins)) - {
    "open", "print", "input", "exit", "quit", "exec", "eval", "compile", "__import__", "breakpoint", "setattr", "delattr",
}  # fmt: skip


def module_tree(module: str) -> ast.Module | None:
    """A loaded module's syntax; None where it has no source."""
    file = file_of(sys.modules[module]) if module in sys.modules else None
    return file.tree if file is not None and file.parses else None


def only_computes(function: ast.FunctionDef, module: str) -> bool:
    """Whether a function, and every function of its module that it calls, uses nothing but tensors and numbers."""
    tree = module_tree(module)
    own = {n.name: n for n in tree.body if isinstance(n, ast.FunctionDef)} if tree is not None else {}
    waiting, seen = [function], {function.name}
    while waiting:
        body = waiting.pop()
        if any(isinstance(n, (ast.Global, ast.Nonlocal)) or _imports_more(n) for n in ast.walk(body)):
            return False
        for node in ast.walk(body):
            if not isinstance(node, ast.Call):
                continue
            if not _is_harmless(node.func, module):
                return False
            name = node.func.id if isinstance(node.func, ast.Name) else ""
            if name in own and name not in seen:
                seen.add(name)
                waiting.append(own[name])
    return True


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
