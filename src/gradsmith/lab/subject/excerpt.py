"""Of a file, only the statements that given names need: a class and what it uses."""

from __future__ import annotations
import __future__

import ast
import copy
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import ModuleType

from gradsmith.lab.subject.importing import ImportFailed, import_problem
from gradsmith.lab.subject.standins import is_stand_in, stand_in, undecorated
from gradsmith.source.needed import binds, futures, needed, tree_of

_DECLARED = "gradsmith_inputs"


class _Undecorated(ast.NodeTransformer):
    """Without the decorators that are not here: what compiles a function or checks its types leaves its numbers alone."""

    def __init__(self, names: Mapping[str, object]) -> None:
        self.names = names

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.decorator_list = [d for d in node.decorator_list if not is_stand_in(self.names.get(_root(d)))]
        self.generic_visit(node)
        return node


def _root(node: ast.expr) -> str:
    while isinstance(node, (ast.Attribute, ast.Call)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def excerpt(path: Path, name: str, wanted: Iterable[str]) -> tuple[ModuleType, list[str]]:
    """A module with these names, and the names that had to be replaced, because their statements raise."""
    wanted = set(wanted)
    try:
        tree = tree_of(path)
    except (SyntaxError, ValueError) as error:
        raise ImportFailed(f"{path.name} is not Python: {error}") from error
    module = ModuleType(name)
    module.__file__ = str(path)
    module.__package__ = name.rpartition(".")[0]
    sys.modules[name] = module
    replaced: list[str] = []
    flags = sum(getattr(__future__, alias.name).compiler_flag for s in futures(tree) for alias in s.names)
    for statement in needed(tree, wanted | {_DECLARED}):
        plain = _Undecorated(vars(module)).visit(copy.deepcopy(statement))
        one = ast.Module([plain], [])
        try:
            exec(compile(one, str(path), "exec", flags, dont_inherit=True), vars(module))
            if isinstance(statement, ast.FunctionDef) and len(plain.decorator_list) < len(statement.decorator_list):
                setattr(
                    module, statement.name, undecorated(getattr(module, statement.name), f"{name}.{statement.name}")
                )
        except BaseException as error:  # the user's statements, some of whose names are stand-ins
            bound = binds(statement)
            if isinstance(error, KeyboardInterrupt) or bound & wanted:
                raise ImportFailed(import_problem(error, path)) from error
            why = f"line {statement.lineno} raises {type(error).__name__}: {error}"
            for each in sorted(bound - {*vars(module), "*"}):
                setattr(module, each, stand_in(f"{name}.{each}", why))
                replaced.append(each)
    if absent := [each for each in sorted(wanted) if not hasattr(module, each)]:
        raise ImportFailed(f"{path.name} does not define {', '.join(absent)}")
    return module, replaced
