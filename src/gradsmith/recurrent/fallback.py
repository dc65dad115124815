"""The last rung of the ladder: the loop a careful user would write. Always right, never O(T^2), any device, any step.

`x[t]` in a loop costs O(T^2) in backward, because each select writes a gradient as long as the whole sequence
(T=4096, B=4, H=64: 1757 ms with `x[t]`, 94 ms with `unbind`). `unbind` has one backward for all steps.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils import _pytree as pytree

from .structure import Flat, describe, flatten

Step = Callable[..., Any]


def unpack(result: Any, who: str) -> tuple[Any, Any]:
    if not (isinstance(result, tuple | list) and len(result) == 2):
        raise TypeError(f"{who}: step must return (y, state), but returned {type(result).__name__}.")
    return result[0], result[1]


def check_state(before: Flat, after: Flat, who: str) -> None:
    """A state must keep its structure and shapes, or there is no loop over it."""
    if before.spec != after.spec:
        raise ValueError(
            f"{who}: step must return a state of the structure it was given, {before.spec}, not {after.spec}."
        )
    for name, old, new in zip(before.names, before.leaves, after.leaves):
        if old.shape != new.shape:
            raise ValueError(
                f"{who}: {name} has shape {describe(old)}, but step returned shape {describe(new)} for it;"
                f" the state must keep its shape over time."
            )


def _version(leaf: torch.Tensor) -> int:
    """How often a tensor was changed in place; tensors made in inference mode do not count."""
    return 0 if leaf.is_inference() else leaf._version


def call_step(step: Step, x: list[torch.Tensor], state: Any, params: tuple[Any, ...], x_spec: Any, who: str) -> Any:
    """One step of the user's own code, refusing in-place changes of what belongs to the loop."""
    owned = flatten(state, "state", who)
    versions = [_version(leaf) for leaf in owned.leaves]
    x_versions = [_version(leaf) for leaf in x]
    y, new_state = unpack(step(pytree.tree_unflatten(x, x_spec), state, *params), who)
    for name, leaf, version in zip(owned.names, owned.leaves, versions):
        if _version(leaf) != version:
            raise ValueError(
                f"{who}: step changes {name} in place; return a new tensor instead (h = h + ..., not h += ...)."
            )
    if any(_version(leaf) != version for leaf, version in zip(x, x_versions)):
        raise ValueError(f"{who}: step changes its input x in place; make a new tensor instead.")
    return y, new_state


def unbind_loop(step: Step, x: Flat, state: Any, params: tuple[Any, ...], who: str = "scan") -> tuple[Any, Any]:
    """Run `step` over time under autograd; returns (y, last state)."""
    steps = list(zip(*(leaf.unbind(0) for leaf in x.leaves)))
    before = flatten(state, "state", who)
    outputs: list[tuple[torch.Tensor, ...]] = []
    y_spec: Any = None
    for t, x_t in enumerate(steps):
        if t == 0:
            y, state = call_step(step, list(x_t), state, params, x.spec, who)
        else:
            y, state = unpack(step(pytree.tree_unflatten(list(x_t), x.spec), state, *params), who)
        # At every step, not at the end: a state that doubles would fill the memory before anybody looked.
        check_state(before, flatten(state, "state", who), who)
        leaves = flatten(y, "y", who)
        if y_spec is None:
            y_spec = leaves.spec
        elif leaves.spec != y_spec:
            raise ValueError(f"{who}: step returned y of structure {y_spec} at first, but {leaves.spec} at step {t}.")
        outputs.append(leaves.leaves)
    stacked = [_stack(column, who) for column in zip(*outputs)]
    return pytree.tree_unflatten(stacked, y_spec), state


def live_loop(step: Step, x: Flat, state: Any, params: tuple[Any, ...], sizes: list[int]) -> tuple[Any, Any]:
    """`unbind_loop` for sequences of different lengths, longest first: at each step `sizes` of them have not ended."""
    ended: list[Any] = []
    outputs: list[tuple[torch.Tensor, ...]] = []
    y_spec: Any = None
    for rows, x_t in zip(sizes, zip(*(leaf.split(sizes) for leaf in x.leaves))):
        if rows < pytree.tree_leaves(state)[0].shape[0]:
            ended.append(pytree.tree_map(lambda leaf, rows=rows: leaf[rows:], state))
            state = pytree.tree_map(lambda leaf, rows=rows: leaf[:rows], state)
        y, state = unpack(step(pytree.tree_unflatten(list(x_t), x.spec), state, *params), "scan")
        leaves, y_spec = pytree.tree_flatten(y)
        outputs.append(tuple(leaves))
    y = pytree.tree_unflatten([torch.cat(column) for column in zip(*outputs)], y_spec)
    return y, pytree.tree_map(lambda *parts: torch.cat(parts), state, *reversed(ended))


def _stack(column: tuple[torch.Tensor, ...], who: str) -> torch.Tensor:
    first = column[0].shape
    for t, y in enumerate(column):
        if y.shape != first:
            raise ValueError(
                f"{who}: step returned y of shape {describe(column[0])} at first, but {describe(y)} at step {t};"
                f" y must keep its shape over time."
            )
    return torch.stack(column)
