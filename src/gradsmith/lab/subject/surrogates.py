"""`@gs.surrogate`: say in code that a gradient is not meant to be the derivative."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from gradsmith.lab.subject.declarations import ATTRIBUTE, Declaration
from gradsmith.surrogate_kinds import known

T = TypeVar("T")


def surrogate(kind: str, *, like: Callable[..., Any] | None = None) -> Callable[[T], T]:
    """Declare that a Function's gradient is a surrogate; `like` is the function whose slope it claims.

    >>> import torch
    >>> @surrogate("straight-through")
    ... class Round(torch.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         return x.round()
    ...     @staticmethod
    ...     def backward(ctx, grad_output):
    ...         return grad_output
    """
    known(kind)

    def attach(subject: T) -> T:
        setattr(subject, ATTRIBUTE, Declaration(surrogate=kind, like=like))
        return subject

    return attach
