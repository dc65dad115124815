"""A clamp that keeps forward inside its domain, such as `x.clamp(-1 + eps, 1 - eps)` before an artanh.

Beyond its bounds forward is flat, and what backward says there concerns nobody: such values are not meant to come. That
a clamp is a guard, and not what the Function is about, shows where forward without it is not finite.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from gradsmith.checking.elsewhere.structure import Elsewhere, is_right
from gradsmith.lab.explore.questions import clamps, clamps_something
from gradsmith.lab.explore.tape import OperationTape
from gradsmith.lab.measure.values import finite
from gradsmith.lab.run import forward
from gradsmith.lab.subject.arguments import Arguments
from gradsmith.lab.subject.target import Target
from gradsmith.source.knowledge import CLAMPS


def where_nothing_is_clamped(
    target: Target, args: tuple[Any, ...], kwargs: dict[str, Any], seed: int
) -> Elsewhere | None:
    """Values inside the bounds of a guard, if the gradient is right there."""
    if _finite_unclamped(target, args, kwargs, seed) is not False:
        return None
    for i, value in enumerate(args):
        if not isinstance(value, Tensor) or not value.is_floating_point() or not value.requires_grad:
            continue
        for inside in _inside(value.detach(), seed):
            other = tuple(inside.requires_grad_() if k == i else a for k, a in enumerate(args))
            if _finite_unclamped(target, other, kwargs, seed) and is_right(target, other, kwargs, seed):
                name = target.names[i] if i < len(target.names) else f"input {i + 1}"
                return Elsewhere(other, f"the gradient is right where '{name}' needs no clamping, and only there")
    return None


def _inside(like: Tensor, seed: int) -> Iterator[Tensor]:
    """The usual domains: between -1 and 1, between 0 and 1, above 1, below 0."""
    drawn = torch.rand(like.shape, dtype=like.dtype, generator=torch.Generator().manual_seed(seed))
    yield 1.8 * drawn - 0.9
    yield 0.8 * drawn + 0.1
    yield drawn + 1.1
    yield -drawn - 0.1


def _finite_unclamped(target: Target, args: tuple[Any, ...], kwargs: dict[str, Any], seed: int) -> bool | None:
    """Whether forward is finite without its clamps; None where it has none, or where it raises."""
    found = unclamped(target, args, kwargs, seed)
    return found.finite if found is not None else None


@dataclass(frozen=True)
class Unclamped:
    """A forward whose clamps hand everything through: whether its outputs are finite, and whether a clamp would have acted."""

    finite: bool
    active: bool


def unclamped(target: Target, args: tuple[Any, ...], kwargs: dict[str, Any], seed: int) -> Unclamped | None:
    """None where forward has no clamp, or raises."""
    tape = OperationTape(through=CLAMPS, calls_only=True)
    with torch.no_grad(), contextlib.suppress(Exception):  # user code on values it was not asked about
        run = forward(target, Arguments.of(args, kwargs, target.names), seed=seed, plain=True, tape=tape)
        if clamps(tape):
            return Unclamped(all(finite(out) for out in run.outputs), clamps_something(tape))
    return None
