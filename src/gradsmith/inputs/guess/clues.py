"""What the signature and the body of a Function give away about each of its inputs."""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import UnionType
from typing import Any, Union, get_args, get_origin

import torch
from torch import Tensor

from gradsmith.inputs.guess.callers import calls_of, constants_in
from gradsmith.inputs.guess.counts import counts, counts_some
from gradsmith.inputs.guess.documented import documented, documented_domains
from gradsmith.inputs.guess.equations import equations
from gradsmith.lab.subject.target import Target, has_setup_context
from gradsmith.source import FunctionModel, Method, Value, model_of
from gradsmith.source import knowledge as know
from gradsmith.source.annotations import UNKNOWN, annotated, of_live
from gradsmith.source.knowledge import METHODS
from gradsmith.source.lexicon import is_a
from gradsmith.source.loaded import method_of
from gradsmith.source.uses import Uses, uses
from gradsmith.source.values import used_as_tensor

NOTHING = object()
_TESTS = (ast.If, ast.IfExp, ast.While, ast.Try, ast.BoolOp)  # what stands in them need not hold for every input
_MOST_DIMENSIONS = 6


@dataclass
class Clue:
    """One input: `gradient` is True where backward returns one, False where it always returns None, None: unknown."""

    name: str
    default: Any = NOTHING
    declared: Value = UNKNOWN
    annotation: str = ""  # as text
    classes: tuple[type, ...] = ()  # that the annotation names, of the subject's own package
    gradient: bool | None = None
    tensor: bool = False  # the body uses it as a tensor
    called: int = 0  # with how many values the body calls it
    applies: bool = False  # the first of them is another function
    counting: bool = False  # how many of the starred values belong to one group
    ndim: int | None = None  # `b, t, c = x.shape`, `x.dim() == 3`
    least: int = 0  # dimensions that the body reads on any path: `x.shape[4]`, `x[:, :, i]`
    constants: list[Any] = field(default_factory=list)  # what the body compares it with, what callers pass
    starred: bool = False
    counts: list[int] = field(default_factory=list)  # how many values a starred one stands for, as the source says
    kept_plainly: bool = False  # `ctx.name = name`: where people keep what is no tensor
    keyword: bool = False  # must be passed by name
    uses: Uses = field(default_factory=Uses)
    domain: str = ""  # that the docstring names: positive, unit
    dims: tuple[str, ...] | None = None  # as the docstring, a comment or an equation has them


def clues(target: Target) -> list[Clue]:
    """One clue for each positional input of the subject, a starred one for `*args`."""
    try:
        return _clues(target, model_of(target.function) if target.function is not None else None)
    except RecursionError:  # generated code: a sum of a thousand terms is a thousand levels deep
        return _signature(target, None)


def _signature(target: Target, body: Method | None) -> list[Clue]:
    function = target.function
    forward: Callable[..., Any] = function.forward if function is not None else _body_of(target)
    return signature_clues(forward, skip_first=function is not None and not has_setup_context(function), body=body)


def _clues(target: Target, model: FunctionModel | None) -> list[Clue]:
    function = target.function
    body = model.forward if model is not None else method_of(_body_of(target)) if function is None else None
    found = _signature(target, body)
    if function is not None:
        found = _without_silent_defaults(found, model)
        _read_calls(found, function)
        shapes = documented(function, [clue.name for clue in found])
        # What is computed with cannot be out of date.
        shapes |= equations(body.node) if body is not None else {}
        ranges = documented_domains(function, [clue.name for clue in found])
        for place, clue in enumerate(found):
            clue.dims, clue.domain = shapes.get(clue.name), ranges.get(clue.name, "")
            if model is not None and not any(each.starred for each in found):
                clue.gradient = model.gives_gradient(place)
    for method in (body, model.setup_context if model is not None else None):
        if method is not None:
            _read_uses({clue.name: clue for clue in found}, method)
            starred = {clue.name for clue in found if clue.starred}
            for clue in found:
                clue.counts += counts(method.node, clue.name) if clue.starred else []
                clue.counting |= not clue.starred and counts_some(method.node, clue.name, starred)
    keeping = [body, model.setup_context, model.backward] if model is not None else [body]
    known = uses([(m.node, m.ctx or "self") for m in keeping if m is not None])
    for clue in found:
        clue.uses = known.get(clue.name, clue.uses)
    return found


def _body_of(target: Target) -> Any:
    if target.module is not None:
        return target.module.forward
    return getattr(target.original, "_init_fn", target.original)


def signature_clues(forward: Callable[..., Any], *, skip_first: bool, body: Method | None = None) -> list[Clue]:
    """What the signature alone says."""
    try:
        parameters = list(inspect.signature(forward).parameters.values())
    except (TypeError, ValueError):
        return []
    names = _names_around(inspect.unwrap(forward))
    body = body or method_of(forward)
    found = []
    for p in parameters[1:] if skip_first else parameters:
        by_name = p.kind is p.KEYWORD_ONLY
        if p.kind is p.VAR_KEYWORD or (by_name and p.default is not p.empty):
            continue
        clue = Clue(p.name, starred=p.kind is p.VAR_POSITIONAL, keyword=by_name)
        clue.default = NOTHING if p.default is p.empty else p.default
        if p.annotation is not p.empty:
            clue.declared = _declared(p, body, names)
            clue.annotation = p.annotation if isinstance(p.annotation, str) else repr(p.annotation)
            clue.classes = tuple(_own_classes(p.annotation, names))
        found.append(clue)
    return found


def _names_around(function: Any) -> dict[str, Any]:
    """What annotations that are text may name: of a constructor, what the module of its class knows."""
    home = sys.modules.get(function.__module__) if isinstance(function, type) else None
    found: dict[str, Any] = vars(home) if home is not None else getattr(function, "__globals__", {})
    return found


def _declared(parameter: inspect.Parameter, body: Method | None, names: Mapping[str, object]) -> Value:
    """What lint reads in the annotation; where that is nothing, what Python made of it (an alias, say)."""
    param = body.param(parameter.name) if body is not None else None
    written = annotated(param.annotation, body.dotted) if body is not None and param is not None else UNKNOWN
    named = written.kind == "unknown" and all(part == UNKNOWN for part in written.parts)
    found = of_live(_evaluated(parameter.annotation, names), names) if named else written
    return written if found == UNKNOWN else found


def _evaluated(annotation: Any, names: Mapping[str, Any]) -> Any:
    """What the text of an annotation stands for (`Operator`, of `Operator = Callable[...]`); the text where nobody knows."""
    if not isinstance(annotation, str):
        return annotation
    try:
        return eval(annotation, dict(names))  # as typing.get_type_hints does
    except Exception:  # a name that only a type checker imports
        return annotation


def _own_classes(annotation: Any, names: Mapping[str, Any]) -> Iterator[type]:
    """The classes of the same package that an annotation names: itself, or one of several that it allows."""
    annotation = _evaluated(annotation, names)
    if isinstance(annotation, type) and not issubclass(annotation, (Tensor, torch.autograd.Function)):
        if same_package(annotation.__module__, str(names.get("__name__"))):
            yield annotation
    elif get_origin(annotation) in (Union, UnionType):
        for part in get_args(annotation):
            yield from _own_classes(part, names)


def same_package(one: str, other: str) -> bool:
    """Whether two modules have the same outermost package.

    >>> same_package("layers.sparse", "layers.utils.matrix")
    True
    """
    return one.partition(".")[0] == other.partition(".")[0]


def _without_silent_defaults(found: list[Clue], model: FunctionModel | None) -> list[Clue]:
    """Without the defaults that backward returns nothing for: its author never passes them."""
    returns = model.backward.returns if model is not None and model.backward is not None else []
    if any(clue.starred for clue in found) or any(r.is_tuple and r.elements is None for r in returns):
        return found
    sizes = {len(r.elements) for r in returns if r.is_tuple and r.elements is not None}
    count = sizes.pop() if len(sizes) == 1 else 0
    if 0 < count < len(found) and all(clue.default is not NOTHING for clue in found[count:]):
        return found[:count]
    return found


def _read_uses(named: dict[str, Clue], body: Method) -> None:
    for name in used_as_tensor(body) & named.keys():
        named[name].tensor |= not named[name].starred
    for node in body.nodes:
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in named:
            if node.attr in METHODS or node.attr in know.TENSOR_SIGNS:
                named[node.value.id].tensor = True
        elif isinstance(node, ast.Call):
            if isinstance(node.func, ast.Name) and node.func.id in named:
                clue = named[node.func.id]
                clue.called = max(clue.called, len(node.args) or 1)
                clue.applies |= bool(node.args) and _is_function(named.get(getattr(node.args[0], "id", "")))
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Name) and node.value.id in named:
            named[node.value.id].kept_plainly |= isinstance(node.targets[0], ast.Attribute)
        elif isinstance(node, ast.Compare) and isinstance(node.left, ast.Name) and node.left.id in named:
            named[node.left.id].constants.extend(_literals(node.comparators[0]))
        elif isinstance(node, (ast.If, ast.IfExp)):
            _read_flag(named, node.test)
        _read_rank(named, node)
        if isinstance(node, (ast.Subscript, ast.Call)) and not any(isinstance(a, _TESTS) for a in body.ancestors(node)):
            _read_least(named, node, body)


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


def _read_least(named: dict[str, Clue], node: ast.Subscript | ast.Call, body: Method) -> None:
    """`x.shape[4]`, also of a name for the shape, `x.size(4)` and `x[:, :, i]`: so many dimensions there are at least."""
    if isinstance(node, ast.Subscript):
        holder = body.resolve(node.value)
        owner = _measured(holder, ("shape", "size", "stride"))
        places: Sequence[ast.expr] = [node.slice]
        if isinstance(holder, ast.Name) and isinstance(node.slice, ast.Tuple):
            own = [e for e in node.slice.elts if not (isinstance(e, ast.Constant) and e.value in (None, ...))]
            _at_least(named.get(holder.id), len(own) if not any(isinstance(e, ast.Starred) for e in own) else 0)
    else:
        method = node.func if isinstance(node.func, ast.Attribute) else None
        named_so = method is not None and method.attr in ("size", "stride") and isinstance(method.value, ast.Name)
        owner = method.value.id if method is not None and named_so and isinstance(method.value, ast.Name) else ""
        places = node.args
    for place in places:
        try:
            index = ast.literal_eval(place)
        except ValueError:
            continue
        if isinstance(index, int) and not isinstance(index, bool):
            _at_least(named.get(owner), index + 1 if index >= 0 else -index)


def _at_least(clue: Clue | None, rank: int) -> None:
    if clue is not None and not clue.starred and rank <= _MOST_DIMENSIONS:
        clue.least = max(clue.least, rank)


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
    names = vars(sys.modules[function.__module__]) if function.__module__ in sys.modules else {}
    for call in calls_of(function):
        given = call.node.args
        if found[-1].starred and not any(isinstance(a, ast.Starred) for a in given):
            found[-1].counts.append(max(0, len(given) - len(found) + 1))
        for clue, arg in zip(found, given):
            if isinstance(arg, ast.Starred):
                break
            clue.constants.extend(constants_in(call, arg, names))
