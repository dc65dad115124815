"""What the signature and the body of a Function give away about each of its inputs."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from gradsmith.inputs.guess.annotations import Declared, declared_kind
from gradsmith.inputs.guess.callers import calls_of, constants_in
from gradsmith.inputs.guess.counts import counts, counts_some
from gradsmith.inputs.guess.documented import documented
from gradsmith.inputs.guess.equations import equations
from gradsmith.lab.target import Target, backward_of, has_setup_context
from gradsmith.source import knowledge as know
from gradsmith.source.knowledge import METHODS
from gradsmith.source.lexicon import is_a

NOTHING = object()


@dataclass
class Clue:
    """One input: `gradient` is True where backward returns one, False where it always returns None, None: unknown."""

    name: str
    default: Any = NOTHING
    declared: Declared = field(default_factory=Declared)
    annotation: str = ""  # as text
    gradient: bool | None = None
    tensor: bool = False  # the body uses it as a tensor
    called: int = 0  # with how many values the body calls it
    applies: bool = False  # the first of them is another function
    counting: bool = False  # how many of the starred values belong to one group
    ndim: int | None = None  # `b, t, c = x.shape`, `x.dim() == 3`
    constants: list[Any] = field(default_factory=list)  # what the body compares it with, what callers pass
    starred: bool = False
    counts: list[int] = field(default_factory=list)  # how many values a starred one stands for, as the source says
    kept_plainly: bool = False  # `ctx.name = name`: where people keep what is no tensor
    keyword: bool = False  # must be passed by name
    dims: tuple[str, ...] | None = None  # as the docstring, a comment or an equation has them


def clues(target: Target) -> list[Clue]:
    """One clue for each positional input of the subject, a starred one for `*args`."""
    function = target.function
    forward: Callable[..., Any] = function.forward if function is not None else _body_of(target)
    found = signature_clues(forward, skip_first=function is not None and not has_setup_context(function))
    bodies = [_parsed(forward)]
    if function is not None:
        backward = _parsed(backward_of(function))
        found = _without_silent_defaults(found, backward)
        _read_gradients(found, backward)
        bodies.append(_parsed(function.setup_context) if has_setup_context(function) else None)
        _read_calls(found, function)
        shapes = documented(function, [clue.name for clue in found])
        # What is computed with cannot be out of date.
        shapes |= equations(bodies[0]) if bodies[0] is not None else {}
        for clue in found:
            clue.dims = shapes.get(clue.name)
    for body in bodies:
        if body is not None:
            _read_uses({clue.name: clue for clue in found}, body)
            starred = {clue.name for clue in found if clue.starred}
            for clue in found:
                clue.counts += counts(body, clue.name) if clue.starred else []
                clue.counting |= not clue.starred and counts_some(body, clue.name, starred)
    return found


def _body_of(target: Target) -> Any:
    if target.module is not None:
        return target.module.forward
    return getattr(target.original, "_init_fn", target.original)


def signature_clues(forward: Callable[..., Any], *, skip_first: bool) -> list[Clue]:
    """What the signature alone says."""
    try:
        parameters = list(inspect.signature(forward).parameters.values())
    except (TypeError, ValueError):
        return []
    hints = getattr(inspect.unwrap(forward), "__globals__", {})
    found = []
    for p in parameters[1:] if skip_first else parameters:
        by_name = p.kind is p.KEYWORD_ONLY
        if p.kind is p.VAR_KEYWORD or (by_name and p.default is not p.empty):
            continue
        clue = Clue(p.name, starred=p.kind is p.VAR_POSITIONAL, keyword=by_name)
        clue.default = NOTHING if p.default is p.empty else p.default
        if p.annotation is not p.empty:
            clue.declared = declared_kind(p.annotation, hints)
            clue.annotation = p.annotation if isinstance(p.annotation, str) else repr(p.annotation)
        found.append(clue)
    return found


def _parsed(function: Any) -> ast.FunctionDef | None:
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(inspect.unwrap(function))))
    except (TypeError, OSError, SyntaxError, ValueError):
        return None
    return next((n for n in tree.body if isinstance(n, ast.FunctionDef)), None)


def _read_gradients(found: list[Clue], backward: ast.FunctionDef | None) -> None:
    """Which positions of backward's return are always None; a star in the middle leaves both ends readable."""
    if backward is None or any(clue.starred for clue in found):
        return
    verdicts: dict[int, set[bool | None]] = {}
    for value in _returned(backward):
        elements = value.elts if isinstance(value, ast.Tuple) else [value]
        star = next((i for i, e in enumerate(elements) if isinstance(e, ast.Starred)), None)
        if not isinstance(value, ast.Tuple) and not isinstance(value, ast.Constant) and len(found) > 1:
            continue  # a name or a call may hold the whole tuple
        for i, element in enumerate(elements):
            place = i if star is None or i < star else len(found) - len(elements) + i
            if i != star and 0 <= place < len(found):
                verdicts.setdefault(place, set()).add(_is_gradient(element, backward))
    for place, seen in verdicts.items():
        found[place].gradient = True if True in seen else None if None in seen else False


def _without_silent_defaults(found: list[Clue], backward: ast.FunctionDef | None) -> list[Clue]:
    """Without the defaults that backward returns nothing for: its author never passes them."""
    if backward is None or any(clue.starred for clue in found):
        return found
    returned = list(_returned(backward))
    counts = {len(v.elts) for v in returned if isinstance(v, ast.Tuple)}
    if len(counts) != 1 or any(isinstance(e, ast.Starred) for v in returned for e in getattr(v, "elts", ())):
        return found
    count = counts.pop()
    if 0 < count < len(found) and all(clue.default is not NOTHING for clue in found[count:]):
        return found[:count]
    return found


def _returned(body: ast.FunctionDef) -> Iterator[ast.expr]:
    for node in ast.walk(body):
        if isinstance(node, ast.Return) and node.value is not None:
            yield node.value


def _is_gradient(element: ast.expr, body: ast.FunctionDef) -> bool | None:
    if isinstance(element, ast.Constant):
        return element.value is not None
    if not isinstance(element, ast.Name):
        return True
    assigned = [n.value for n in ast.walk(body) if isinstance(n, ast.Assign) and _binds(n, element.id)]
    real = [v for v in assigned if not (isinstance(v, ast.Constant) and v.value is None)]
    spread = [v for v in assigned if isinstance(v, ast.Tuple) and all(isinstance(e, ast.Constant) for e in v.elts)]
    if assigned and len(spread) == len(assigned):
        return False
    return bool(real) if assigned else None


def _binds(node: ast.Assign, name: str) -> bool:
    return any(isinstance(n, ast.Name) and n.id == name for target in node.targets for n in ast.walk(target))


def _read_uses(named: dict[str, Clue], body: ast.FunctionDef) -> None:
    for node in ast.walk(body):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in named:
            if node.attr in METHODS or node.attr in know.TENSOR_SIGNS:
                named[node.value.id].tensor = True
        elif isinstance(node, ast.Call):
            if isinstance(node.func, ast.Name) and node.func.id in named:
                clue = named[node.func.id]
                clue.called = max(clue.called, len(node.args) or 1)
                clue.applies |= bool(node.args) and _is_function(named.get(getattr(node.args[0], "id", "")))
            if isinstance(node.func, ast.Attribute) and node.func.attr == "save_for_backward":
                for arg in node.args:
                    if isinstance(arg, ast.Name) and arg.id in named:
                        named[arg.id].tensor = True
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Name) and node.value.id in named:
            named[node.value.id].kept_plainly |= isinstance(node.targets[0], ast.Attribute)
        elif isinstance(node, ast.Compare) and isinstance(node.left, ast.Name) and node.left.id in named:
            named[node.left.id].constants.extend(_literals(node.comparators[0]))
        elif isinstance(node, (ast.If, ast.IfExp)):
            _read_flag(named, node.test)
        _read_rank(named, node)


def _is_function(clue: Clue | None) -> bool:
    if clue is None or clue.tensor:
        return False
    return bool(clue.called) or clue.declared.kind == "callable" or is_a(clue.name, "function")


def _read_flag(named: dict[str, Clue], test: ast.expr) -> None:
    """`a if compress else b`: a flag, of which off is the plainer."""
    bare = test.operand if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not) else test
    if isinstance(bare, ast.Name) and bare.id in named and not named[bare.id].constants:
        named[bare.id].constants = [False, True]


def _read_rank(named: dict[str, Clue], node: ast.AST) -> None:
    """How many dimensions the body takes for granted."""
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple):
        targets = node.targets[0].elts
        owner = _measured(node.value, ("shape", "size"))
        if owner in named and not any(isinstance(t, ast.Starred) for t in targets):
            named[owner].ndim = len(targets)
    elif isinstance(node, ast.Compare) and isinstance(node.comparators[0], ast.Constant):
        owner, rank = _measured(node.left, ("ndim", "dim")), node.comparators[0].value
        if owner in named and isinstance(rank, int) and isinstance(node.ops[0], (ast.Eq, ast.NotEq)):
            named[owner].ndim = named[owner].ndim or rank


def _measured(node: ast.expr, attributes: tuple[str, ...]) -> str:
    """The `x` of `x.shape` and `x.size()`, empty for anything else."""
    if isinstance(node, ast.Call) and not node.args:
        node = node.func
    if isinstance(node, ast.Attribute) and node.attr in attributes and isinstance(node.value, ast.Name):
        return node.value.id
    return ""


def _literals(node: ast.expr) -> list[Any]:
    nodes = node.elts if isinstance(node, (ast.Tuple, ast.List, ast.Set)) else [node]
    values = [n.value for n in nodes if isinstance(n, ast.Constant)]
    return [v for v in values if v is not None and not isinstance(v, (bytes, type(...)))]


def _read_calls(found: list[Clue], function: type) -> None:
    """`Fn.apply(x, 3, "mean")` elsewhere in the file shows what its author passes."""
    for call in calls_of(function):
        given = call.node.args
        if found[-1].starred and not any(isinstance(a, ast.Starred) for a in given):
            found[-1].counts.append(max(0, len(given) - len(found) + 1))
        for clue, arg in zip(found, given):
            if isinstance(arg, ast.Starred):
                break
            clue.constants.extend(constants_in(call, arg))
