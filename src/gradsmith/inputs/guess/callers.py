"""Who calls a Function in its own module, and with what: constants and defaults in the source, the rest by listening.

What a Function is given is often made by the code around it: a configuration, a permutation, an index with its inverse.
Where no guess for the Function itself works, its callers are guessed for, and what arrives is kept.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.utils import _pytree as pytree

from gradsmith.inputs.guess.harmless import only_computes
from gradsmith.inputs.guess.proposals import AtEntries
from gradsmith.lab.observe import Trace, observing
from gradsmith.lab.subject.target import Target, resolve
from gradsmith.lab.subject.wrapped import Wrapped
from gradsmith.source.applied import Application, applications
from gradsmith.source.lexicon import is_a
from gradsmith.source.loaded import file_of

_SIMPLE = (bool, int, float, str)
_CONVERTED = frozenset({"float", "int", "bool", "str", "tuple"})
_MOST = 3  # callers to listen to


@dataclass(frozen=True)
class PassedOn:
    """Arguments a caller passed, and who it was."""

    args: tuple[Any, ...]
    caller: str


def calls_of(function: type) -> list[Application]:
    """Every place of its file that calls `apply` of a Function, under this name or one it was bound to."""
    file = file_of(function)
    return applications(file, function.__name__) if file is not None else []


def constants_in(call: Application, argument: ast.expr, names: Mapping[str, Any]) -> list[Any]:
    """What a call passes for one argument, where the source says it: itself, or the default of the caller.

    `names` are those of the module: a default may be a constant of its own.
    """
    while isinstance(argument, ast.Call) and getattr(argument.func, "id", "") in _CONVERTED and len(argument.args) == 1:
        argument = argument.args[0]  # `float(cutoff)`
    literal = _literal(argument)
    if literal is None and isinstance(argument, ast.Name) and call.function is not None:
        literal = _default(call.function, argument.id, names)
    if literal is None and isinstance(argument, ast.Attribute) and getattr(argument.value, "id", "") == "self":
        init = [n for n in ast.walk(call.owner) if isinstance(n, ast.FunctionDef)] if call.owner is not None else []
        literal = next((_default(n, argument.attr.strip("_"), names) for n in init if n.name == "__init__"), None)
    return [] if literal is None else [literal]


def _default(function: ast.FunctionDef, name: str, names: Mapping[str, Any]) -> Any:
    positional = [*function.args.posonlyargs, *function.args.args]
    given = dict(zip([a.arg for a in reversed(positional)], reversed(function.args.defaults)))
    named = {a.arg: d for a, d in zip(function.args.kwonlyargs, function.args.kw_defaults) if d is not None}
    node = {**given, **named}.get(name)
    if isinstance(node, ast.Name):
        value = names.get(node.id)
        return value if isinstance(value, _SIMPLE) else None
    return None if node is None else _literal(node)


def _literal(node: ast.expr) -> Any:
    """A number, a word, a flag or a tuple of numbers; None for anything else."""
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError):
        return None
    whole = isinstance(value, tuple) and all(isinstance(v, (int, float)) for v in value)
    return value if isinstance(value, _SIMPLE) or whole else None


def passed_by_callers(target: Target, seed: int, attempts: float) -> Iterator[PassedOn]:
    """What the callers of a Function pass to it, when they are called with guessed inputs."""
    from gradsmith.inputs.guess.search import guess

    if target.function is None:
        return
    for subject, name in _subjects(target.function):
        trace = Trace()
        with observing([target.function], trace):
            guess(subject, seed=seed, attempts=attempts)
        for call in reversed(trace.forwards):  # the last ones are those that worked best
            if any(_wants_gradient(a) for a in pytree.tree_leaves(call.args)):
                # A module's parameters, passed on beside it, are its own: a gradient for copies would be nobody's.
                held = {id(p) for a in call.args if isinstance(a, nn.Module) for p in a.parameters()}
                yield PassedOn(tuple(a if id(a) in held else _own(a) for a in call.args), name)
                break


def _subjects(function: type) -> Iterator[tuple[Target, str]]:
    module = sys.modules.get(function.__module__)
    seen: set[str] = set()
    for call in calls_of(function):
        name = call.owner.name if call.owner is not None else call.function.name if call.function is not None else ""
        subject = getattr(module, name, None)
        if not name or name in seen or len(seen) == _MOST or not _may_be_called(call, function.__module__):
            continue
        seen.add(name)
        if isinstance(subject, type) and issubclass(subject, nn.Module):
            from gradsmith.inputs.modules import constructed

            for built in constructed(subject, 0):
                if not isinstance(built, str):
                    yield resolve(built.module), built.code
                    break
        elif inspect.isfunction(subject):
            yield resolve(subject), name


def _may_be_called(call: Application, module: str) -> bool:
    """Whether the caller takes inputs, returns something, and does nothing that leaves traces."""
    body = call.function
    if body is None or is_a(body.name, "entry point") or body.name.startswith("test"):
        return False
    if call.owner is not None and body.name != "forward":
        return False
    returns = any(isinstance(n, ast.Return) and n.value is not None for n in ast.walk(body))
    return returns and len(body.args.args) > len(body.args.defaults) and only_computes(body, module)


def _wants_gradient(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.requires_grad


def _own(value: Any) -> Any:
    """A copy that is a leaf, a sparse matrix as one of its entries; what is no tensor as it is."""
    if isinstance(value, torch.Tensor) and value.layout in (torch.sparse_csr, torch.sparse_coo) and value.dim() == 2:
        dense = value.detach().to_dense()  # gradients are judged where numbers can be moved
        return Wrapped(AtEntries(value.layout, dense != 0), (dense.requires_grad_(value.requires_grad),))
    if isinstance(value, torch.Tensor):
        return value.detach().clone().requires_grad_(value.requires_grad)
    if isinstance(value, (list, tuple)) and type(value) in (list, tuple):
        return type(value)(_own(v) for v in value)
    return value
