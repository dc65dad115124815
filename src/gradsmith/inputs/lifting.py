"""A class that is defined inside a function, without running that function.

Of the function only the statements are executed that bind a name the class uses (imports, constants, other classes and
functions); whatever else it does, opening files or starting processes, it does not do here. Values of parameters that
the class uses come from their defaults, from a call in the same module, or are guessed, which `assumed` tells.
"""

from __future__ import annotations

import ast
import copy
import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import CodeType, ModuleType
from typing import Any

from gradsmith.source.loaded import definition_of, file_of
from gradsmith.source.uses import Uses, uses

_BINDING = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.FunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)
_OPEN = (ast.If, ast.With, ast.Try)


class NotLiftable(AttributeError):
    """Why the class cannot be had without calling the function it stands in."""


@dataclass(frozen=True)
class BuiltWith:
    """The parameters a lifted class was built with; `guessed` are those that no default and no call gives."""

    outer: str
    values: Mapping[str, Any] = field(default_factory=dict)
    guessed: tuple[str, ...] = ()


_assumed: dict[type, BuiltWith] = {}


def assumed(cls: type | None) -> BuiltWith | None:
    """What a class was lifted with; None for an ordinary one."""
    return _assumed.get(cls) if cls is not None else None


def lookup(module: ModuleType, qualified: str) -> Any:
    """`Outer.Inner` in a module; `build.<locals>.Inner` is lifted out of the function it stands in."""
    value: Any = module
    inside = False
    for part in qualified.split("."):
        if part == "<locals>":
            inside = True
            continue
        value = lift(value, part) if inside else getattr(value, part)
        inside = False
    return value


def lift(outer: Callable[..., Any], name: str) -> Any:
    """The class or function `name` that is defined in the body of `outer`.

    >>> def build():
    ...     raise RuntimeError("not run")
    >>> lift(build, "Inner")  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
        ...
    gradsmith.inputs.lifting.NotLiftable: build defines no Inner
    """
    outer = inspect.unwrap(outer)
    node = _definition(outer)
    kept = _needed(outer, node, name)
    used = {read for statement in kept for read in _reads(outer, statement)}
    values, guessed = _parameters(outer, node, used)
    tree = ast.fix_missing_locations(ast.Module([_pruned(node, kept, name, list(values))], []))
    here: dict[str, Any] = {}
    exec(compile(tree, outer.__code__.co_filename, "exec"), outer.__globals__, here)
    try:
        found = here[node.name](**values)
    except Exception as error:  # the user's statements on values they may not want
        raise NotLiftable(f"building it raises {type(error).__name__}: {error}") from error
    found.__qualname__ = f"{outer.__qualname__}.<locals>.{name}"
    if isinstance(found, type):
        _assumed[found] = BuiltWith(outer.__qualname__, values, guessed)
    return found


def _pruned(node: ast.FunctionDef, kept: list[ast.stmt], name: str, parameters: list[str]) -> ast.FunctionDef:
    """The function with these statements and parameters only, that returns `name`."""
    pruned = copy.copy(node)  # the syntax belongs to the file's model
    given = [ast.arg(parameter) for parameter in parameters]
    pruned.args = ast.arguments(posonlyargs=[], args=given, kwonlyargs=[], kw_defaults=[], defaults=[])
    pruned.body = [*kept, ast.Return(ast.Name(name, ast.Load()))]
    pruned.decorator_list, pruned.returns = [], None
    return pruned


def _definition(outer: Callable[..., Any]) -> ast.FunctionDef:
    node = definition_of(outer)
    if node is None:
        raise NotLiftable(f"{getattr(outer, '__name__', outer)} is no plain function whose source can be read")
    return node


def _needed(outer: Callable[..., Any], node: ast.FunctionDef, name: str) -> list[ast.stmt]:
    """The statements that define `name` and, transitively, what it uses; in the order of the source."""
    statements = list(_flat(node.body))
    binders: dict[str, list[ast.stmt]] = {}
    for statement in statements:
        for bound in _binds(statement):
            binders.setdefault(bound, []).append(statement)
    if name not in binders:
        raise NotLiftable(f"{node.name} defines no {name}")
    kept: list[ast.stmt] = []
    wanted = [name]
    seen: set[str] = set()
    while wanted:
        each = wanted.pop()
        if each in seen:
            continue
        seen.add(each)
        for statement in binders.get(each, ()):
            if not isinstance(statement, _BINDING):
                raise NotLiftable(f"it uses '{each}', which {node.name} computes in line {statement.lineno}")
            if statement not in kept:
                kept.append(statement)
                wanted += _reads(outer, statement)
    return [s for s in statements if s in kept]


def _reads(outer: Any, statement: ast.stmt) -> list[str]:
    """Names of `outer` that a statement reads; what a method calls its own parameters is none of them."""
    if not isinstance(statement, (ast.ClassDef, ast.FunctionDef)):
        return [n.id for n in ast.walk(statement) if isinstance(n, ast.Name)]
    inner = [c for c in outer.__code__.co_consts if isinstance(c, CodeType) and c.co_name == statement.name]
    head: list[ast.expr] = list(statement.decorator_list)
    head += statement.bases if isinstance(statement, ast.ClassDef) else statement.args.defaults
    return [
        *(n for c in inner for n in c.co_freevars),
        *(n.id for e in head for n in ast.walk(e) if isinstance(n, ast.Name)),
    ]


def _flat(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    for statement in body:
        if isinstance(statement, _OPEN):
            yield from _flat(statement.body)
        else:
            yield statement


def _binds(statement: ast.stmt) -> set[str]:
    if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
        return {statement.name}
    if isinstance(statement, (ast.Import, ast.ImportFrom)):
        return {alias.asname or alias.name.partition(".")[0] for alias in statement.names}
    return {n.id for n in ast.walk(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}


def _parameters(
    outer: Callable[..., Any], node: ast.FunctionDef, used: set[str]
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Values for the parameters that the kept statements use."""
    from gradsmith.inputs.guess.clues import NOTHING, signature_clues
    from gradsmith.inputs.guess.names import habits

    said = _said(outer)
    done_with = uses([(node, "")])
    values: dict[str, Any] = {}
    guessed: list[str] = []
    for clue in signature_clues(outer, skip_first=False):
        if clue.name not in used:
            continue
        if clue.starred:
            values[clue.name] = ()
            continue
        known = [v for h in habits(clue.name) for v in h.values] or _by_use(
            done_with[clue.name], clue.name, outer, node
        )
        if clue.name in said:
            values[clue.name] = said[clue.name]
        elif clue.default is not NOTHING:
            values[clue.name] = clue.default
        elif known:
            values[clue.name] = known[0]
            guessed.append(clue.name)
        else:
            raise NotLiftable(f"it uses '{clue.name}' of {node.name}, which only a caller can give")
    return values, tuple(guessed)


def _by_use(found: Uses, name: str, outer: Callable[..., Any], node: ast.FunctionDef) -> list[Any]:
    """What a parameter may be that is called, counted up to or calculated with; nothing where it is used otherwise."""
    from gradsmith.inputs.guess.functions import likely
    from gradsmith.inputs.guess.objects import fitting

    if found.called and not found.attributes:
        return list(likely(name, found.called, applies=False))
    if objects := fitting(found, outer.__module__):
        return objects
    if any(callee == range.__name__ for callee, _ in found.passed):
        return [3]
    operands = (n for n in ast.walk(node) if isinstance(n, (ast.BinOp, ast.Compare)))
    read = {leaf.id for n in operands for leaf in ast.iter_child_nodes(n) if isinstance(leaf, ast.Name)}
    return [0.7] if name in read and not found.known else []


def _said(outer: Callable[..., Any]) -> dict[str, Any]:
    """`quantise(8)`, `surrogate_of(torch.tanh)` elsewhere in the module: what its callers pass that needs no running."""
    file = file_of(outer)
    names = list(inspect.signature(outer).parameters)
    best: dict[str, Any] = {}
    for call, hidden in _calls_in(file.tree, outer.__name__, frozenset()) if file is not None else ():
        said: dict[str, Any] = {}
        for name, node in [*zip(names, call.args), *((k.arg or "", k.value) for k in call.keywords)]:
            if isinstance(node, ast.Constant):
                said[name] = node.value
            elif callable(value := _global(node, outer.__globals__, hidden)):
                said[name] = value
        # From one call only: a function and its derivative have to fit each other.
        best = said if len(said) > len(best) else best
    return best


def _calls_in(node: ast.AST, name: str, hidden: frozenset[str]) -> Iterator[tuple[ast.Call, frozenset[str]]]:
    """Calls of `name`, each with the names that the functions around it bind themselves."""
    for child in ast.iter_child_nodes(node):
        own = hidden
        if isinstance(child, (ast.FunctionDef, ast.Lambda)):
            bound = {n.arg for n in ast.walk(child.args) if isinstance(n, ast.arg)}
            bound |= {n.id for n in ast.walk(child) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
            own = hidden | bound
        if isinstance(child, ast.Call) and getattr(child.func, "id", "") == name:
            yield child, own
        yield from _calls_in(child, name, own)


def _global(node: ast.expr, known: Mapping[str, Any], hidden: frozenset[str]) -> Any:
    """What `relu` or `torch.relu` is in the module; None for anything else."""
    if isinstance(node, ast.Name):
        return None if node.id in hidden else known.get(node.id)
    return getattr(_global(node.value, known, hidden), node.attr, None) if isinstance(node, ast.Attribute) else None
