"""The defaults that a call left out, given explicitly: what is not among the arguments cannot be changed."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from gradsmith.lab.run import forward
from gradsmith.lab.subject.arguments import Arguments
from gradsmith.lab.subject.binding import TRAINING
from gradsmith.lab.subject.target import Target, has_setup_context


def with_defaults(target: Target, arguments: Arguments) -> Arguments:
    """The arguments and, behind them, every default of the signature; whether a module trains is one of them.

    What was given keeps its position. The arguments themselves come back where nothing was left out, and where the subject
    does not run when it is given more (a backward that returns one gradient per argument of the example).
    """
    args, kwargs = arguments.with_tensors({})
    if target.function is not None:
        filled = Arguments.of((*args, *_behind(target, len(args))), kwargs, names_of(target))
    else:
        filled = Arguments.of(args, {**kwargs, **dict(_left_out(target, args, kwargs))}, names_of(target))
    if len(filled.flat) == len(arguments.flat):
        return arguments
    known = {leaf.position: leaf for leaf in arguments.leaves}
    leaves = [replace(known.get(x.position, x), name=x.name) for x in filled.leaves]
    found = Arguments([*arguments.flat, *filled.flat[len(arguments.flat) :]], filled.spec, leaves)
    return found if _runs(target, found) else arguments


def as_written(target: Target, example: Arguments, filled: Arguments, changed: Arguments) -> Arguments:
    """`changed` as a user would write it: without the defaults that the example left out and that are still what they were.

    `filled` is what `with_defaults` made of the example, and what `changed` came from.
    """
    (given, named), (before, defaults) = example.with_tensors({}), filled.with_tensors({})
    args, kwargs = changed.with_tensors({})
    count = len(args)
    while count > len(given) and _same(args[count - 1], before[count - 1]):
        count -= 1
    kept = {key: value for key, value in kwargs.items() if key in named or not _same(value, defaults.get(key))}
    found = Arguments.of(args[:count], kept, names_of(target))
    known = {leaf.name: leaf for leaf in changed.leaves}
    leaves = [replace(known.get(x.name, x), position=x.position) for x in found.leaves]
    return Arguments(found.flat, found.spec, leaves)


def _same(a: Any, b: Any) -> bool:
    plain = type(a) is type(b) and isinstance(a, (bool, int, float, str, tuple, type(None)))
    return a is b or (plain and bool(a == b))


def names_of(target: Target) -> tuple[str, ...]:
    """What the arguments are called, in their order: a module's parameters come first."""
    return ("parameters", *target.names) if is_functional(target) else target.names


def is_functional(target: Target) -> bool:
    """A module that is called with its parameters."""
    return target.module is not None and target.call is not target.module


def _behind(target: Target, given: int) -> Iterator[Any]:
    """The defaults of a Function's forward behind the arguments given: `apply` takes no keywords."""
    assert target.function is not None
    ctx = 0 if has_setup_context(target.function) else 1
    for parameter in _parameters(target.function.forward)[given + ctx :]:
        if parameter.kind not in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            return
        if parameter.default is parameter.empty:
            return
        yield parameter.default


def _left_out(target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Keywords and their defaults."""
    functional = is_functional(target)
    body = target.module.forward if target.module is not None else getattr(target.original, "_init_fn", target.original)
    parameters = _parameters(body)
    try:
        bound = inspect.Signature(parameters).bind(*args[1 if functional else 0 :], **kwargs).arguments
    except TypeError:  # it is called in another way than its signature says
        return
    for parameter in parameters:
        keyword = parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
        if keyword and parameter.name not in bound and parameter.default is not parameter.empty:
            yield parameter.name, parameter.default
    if functional and target.module is not None and TRAINING not in kwargs:
        yield TRAINING, target.module.training


def _parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    try:
        return list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # written in C++
        return []


def _runs(target: Target, arguments: Arguments) -> bool:
    try:
        run = forward(target, arguments)
        run.gradients(run.ones())
    except Exception:  # any error of the subject's code
        return False
    return True
