"""Gradients that are not meant to be the derivative: which kinds there are, and which contracts each kind waives."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from gradsmith.catalog import nearest
from gradsmith.findings import GradsmithError
from gradsmith.lab.declarations import ATTRIBUTE, Declaration

T = TypeVar("T")

# Every surrogate is free of the derivative; the rest of the contract holds unless its kind says otherwise.
_ALWAYS = frozenset(
    {"wrong-gradient", "none-for-tensor", "undeclared-surrogate", "wrong-second-order", "ignored-grad-output"}
)
WAIVED: Mapping[str, frozenset[str]] = {
    "straight-through": _ALWAYS,
    "reversal": _ALWAYS,
    "scale": _ALWAYS,
    "quantise": _ALWAYS,
    "routing": _ALWAYS,
    "clip": _ALWAYS | {"nonlinear-backward"},
    "sparsify": _ALWAYS | {"nonlinear-backward"},
    "noise": _ALWAYS
    | {
        "nonlinear-backward",
        "not-repeatable",
        "random-backward",
        "nondeterministic",
        "frozen-input",
        "class-state",
        "layout-dependent",
    },
    "stop": _ALWAYS | {"unused-output"},
    "custom": _ALWAYS | {"nonlinear-backward"},
}


def waived(kind: str) -> frozenset[str]:
    """Rules that do not apply to a surrogate of this kind."""
    if kind not in WAIVED:
        raise GradsmithError(f"no surrogate is called {kind!r}; {nearest(kind, WAIVED)}")
    return WAIVED[kind]


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
    waived(kind)

    def attach(subject: T) -> T:
        setattr(subject, ATTRIBUTE, Declaration(surrogate=kind, like=like))
        return subject

    return attach
