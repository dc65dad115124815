"""More that speaks for a Function whose gradient is wrong on guessed inputs: a guard of norms, a loop that stopped early."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from gradsmith.checking.elsewhere.guards import unclamped
from gradsmith.checking.elsewhere.structure import Elsewhere, is_right
from gradsmith.lab.run import forward
from gradsmith.lab.subject.arguments import Arguments
from gradsmith.lab.subject.target import Target
from gradsmith.source.lexicon import is_a
from gradsmith.source.loaded import code_of

_STOPS = re.compile(r"^\s+(break|while)\b", re.MULTILINE)
_CONVERGED = 24
_SMALL = 0.2


def where_no_norm_is_clamped(
    target: Target, args: tuple[Any, ...], kwargs: dict[str, Any], seed: int
) -> Elsewhere | None:
    """Points of a ball: forward clamps their norms, because it is not finite beyond; inside, the gradient is right."""
    places = [i for i, a in enumerate(args) if isinstance(a, Tensor) and a.is_floating_point() and a.requires_grad]
    inside = _scaled(args, places, _SMALL)
    met = unclamped(target, inside, kwargs, seed)
    if not places or met is None or met.active or not met.finite:
        return None
    # That a clamp is a guard shows where forward without it fails: here, with one point inside and the other outside.
    beyond = [args, *(_scaled(args, [i], _SMALL) for i in places), _scaled(args, places, 1 / _SMALL)]
    failed = [found for other in beyond if (found := unclamped(target, other, kwargs, seed)) and found.active]
    if all(found.finite for found in failed) or not is_right(target, inside, kwargs, seed):
        return None
    names = " and ".join(f"'{target.names[i]}'" for i in places if i < len(target.names))
    return Elsewhere(inside, f"the gradient is right where {names} need no clamping")


def where_iterations_converged(
    target: Target, args: tuple[Any, ...], kwargs: dict[str, Any], seed: int
) -> Elsewhere | None:
    """A backward that is the derivative of the limit (of a root, a fixed point) is right after enough iterations."""
    more = with_more_iterations(target, args)
    if more is None:
        return None
    longer, names = more
    for other, words in _matrices(longer):
        if is_right(target, other, kwargs, seed):
            return Elsewhere(other, f"the gradient is right where {names} is {_CONVERGED}{words}")
    return None


def with_more_iterations(target: Target, args: tuple[Any, ...]) -> tuple[tuple[Any, ...], str] | None:
    """The same arguments with as many iterations as usually suffice, and whose number that is; None where none is given."""
    counts = [
        i
        for i, a in enumerate(args)
        if isinstance(a, int) and not isinstance(a, bool) and a < _CONVERGED and is_a(_name(target, i), "step count")
    ]
    longer = tuple(_CONVERGED if i in counts else a for i, a in enumerate(args))
    return (longer, " and ".join(f"'{_name(target, i)}'" for i in counts)) if counts else None


def where_tolerances_are_small(
    target: Target, args: tuple[Any, ...], kwargs: dict[str, Any], seed: int
) -> Elsewhere | None:
    """What bounds an error and may be as small as one likes: where an iteration stops, what a backward adds to divide by.

    An epsilon that forward computes with is part of what is differentiated, and a backward without it is wrong.
    """
    owner = target.function or type(target.original)
    places = [i for i, a in enumerate(args) if _is_tolerance(_name(target, i), a)]
    kept = {name: value for name, value in vars(owner).items() if _is_tolerance(name, value)}
    if not places and not kept:
        return None
    tight = tuple(max(a * 1e-6, 1e-13) if i in places else a for i, a in enumerate(args))
    try:
        for name, value in kept.items():
            setattr(owner, name, max(value * 1e-6, 1e-13))
        meant = _STOPS.search(code_of(target.function or target.original)) or (
            places and _same_outputs(target, args, tight, kwargs, seed)
        )
        if not meant or not is_right(target, tight, kwargs, seed):
            return None
    finally:
        for name, value in kept.items():
            setattr(owner, name, value)
    names = " and ".join([f"'{_name(target, i)}'" for i in places] + [f"{owner.__name__}.{name}" for name in kept])
    return Elsewhere(tight, f"the gradient is right with a smaller {names}")


def _is_tolerance(name: str, value: Any) -> bool:
    return type(value) is float and 0 < value <= 1e-2 and is_a(name, "tolerance")


def _same_outputs(
    target: Target, args: tuple[Any, ...], other: tuple[Any, ...], kwargs: dict[str, Any], seed: int
) -> bool:
    with torch.no_grad(), contextlib.suppress(Exception):  # user code on values it was not asked about
        runs = [forward(target, Arguments.of(a, kwargs, target.names), seed=seed, plain=True) for a in (args, other)]
        return all(torch.equal(a, b) for a, b in zip(runs[0].outputs, runs[1].outputs))
    return False


def _matrices(args: tuple[Any, ...]) -> Iterator[tuple[tuple[Any, ...], str]]:
    """As they are; then with square matrices that iterations converge for."""
    yield args, ""
    generator = torch.Generator().manual_seed(3)

    def definite(value: Any) -> Any:
        if (
            not isinstance(value, Tensor)
            or not value.is_floating_point()
            or value.ndim < 2
            or value.shape[-1] != value.shape[-2]
        ):
            return value
        size = value.shape[-1]
        unit = torch.eye(size, dtype=value.dtype)
        if not value.requires_grad:
            return unit.expand(value.shape).clone()
        drawn = torch.randn(value.shape, dtype=value.dtype, generator=generator)
        return (drawn @ drawn.mT + size * unit).requires_grad_()

    changed = tuple(definite(a) for a in args)
    if any(a is not b for a, b in zip(changed, args)):
        yield changed, " and square matrices are positive definite, or the identity"


def _scaled(args: tuple[Any, ...], places: list[int], factor: float) -> tuple[Any, ...]:
    return tuple((a.detach() * factor).requires_grad_() if i in places else a for i, a in enumerate(args))


def _name(target: Target, position: int) -> str:
    return target.names[position] if position < len(target.names) else f"input {position + 1}"


def where_inputs_are_vectors(
    target: Target, args: tuple[Any, ...], kwargs: dict[str, Any], seed: int
) -> Elsewhere | None:
    """An index of several dimensions, where the author means a list of places: `x[index]` then grows by a dimension."""
    if not any(isinstance(a, Tensor) and a.dtype in _INDICES and a.ndim > 1 for a in args):
        return None
    lines = tuple(line(a) for a in args)
    if not is_right(target, lines, kwargs, seed):
        return None
    return Elsewhere(lines, "the gradient is right where every input has one dimension")


_INDICES = (torch.int64, torch.int32)


def line(value: Any) -> Any:
    """The first column of a tensor, the first of several sizes."""
    if isinstance(value, Tensor) and value.ndim > 1:
        column = value.detach().flatten(1)[:, 0].clone()
        return column.requires_grad_(value.requires_grad)
    return value[0] if isinstance(value, tuple) and value and isinstance(value[0], int) else value
