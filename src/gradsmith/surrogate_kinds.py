"""The kinds of gradients that are not meant to be the derivative, and which rules each of them waives.

lint and check ask the same table. Never imports torch.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from gradsmith.catalog import nearest
from gradsmith.findings import GradsmithError

if TYPE_CHECKING:
    from gradsmith.source.suppressions import Declaration

NO_KIND = "surrogate"  # declared, and nothing more: only the slope is free
# What compares a gradient with the derivative of forward; free for every surrogate.
_SLOPE = frozenset({"wrong-gradient", "undeclared-surrogate", "wrong-second-order"})
_CHANCE = frozenset(
    {"not-repeatable", "random-backward", "nondeterministic", "frozen-input", "class-state", "layout-dependent"}
)
WAIVED: Mapping[str, frozenset[str]] = {
    "straight-through": _SLOPE,
    "reversal": _SLOPE,
    "reverse": _SLOPE,
    "scale": _SLOPE,
    "quantise": _SLOPE,
    "routing": _SLOPE,
    "clip": _SLOPE | {"nonlinear-backward"},
    "sparsify": _SLOPE | {"nonlinear-backward"},
    "custom": _SLOPE | {"nonlinear-backward"},
    "noise": _SLOPE | {"nonlinear-backward"} | _CHANCE,
    # A gradient of its own beside the one that comes in, or in its place: doubling grad_output does not double it.
    "aux-loss": _SLOPE | {"nonlinear-backward", "ignored-grad-output"},
    "stop": _SLOPE | {"none-for-tensor", "unused-output"},
}


def waived(kind: str) -> frozenset[str]:
    """Rules that do not apply to a surrogate of this kind.

    >>> sorted(waived("clip") - waived("scale"))
    ['nonlinear-backward']
    """
    if kind == NO_KIND:
        return _SLOPE
    if kind not in WAIVED:
        raise GradsmithError(f"no surrogate is called {kind!r}; {nearest(kind, WAIVED)}")
    return WAIVED[kind]


def waives(declaration: Declaration | None, rule: str) -> bool:
    """Whether a declaration in the source frees a gradient from this rule; a kind that nobody knows frees the slope."""
    if declaration is None or declaration.gradient != "surrogate":
        return False
    return rule in WAIVED.get(declaration.kind, _SLOPE)
