"""Sequences of different lengths where rows cannot leave the batch: after its end a sequence keeps its state and outputs zeros."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from .fallback import Step, unpack


def check_lengths(given: Any, steps: int, batch: int, batched: bool, who: str) -> Tensor:
    lengths: Tensor = torch.as_tensor(given)
    if not batched:
        lengths = lengths.reshape(1)
    if lengths.shape != (batch,):
        raise ValueError(f"{who}: lengths has shape {tuple(lengths.shape)}, but the batch has {batch} sequences.")
    if lengths.dtype.is_floating_point or lengths.dtype is torch.bool:
        raise ValueError(f"{who}: lengths must be whole numbers, not {lengths.dtype}.")
    if int(lengths.max()) > steps or int(lengths.min()) < 1:
        raise ValueError(
            f"{who}: lengths must lie between 1 and the {steps} time steps of x, found {int(lengths.min())} to {int(lengths.max())}."
        )
    return lengths.to(torch.int64)


def mask_steps(step: Step, x: Any, lengths: Tensor) -> tuple[Step, tuple[Any, Tensor]]:
    """The step that stands still where a sequence has ended, and the input that tells it so.

    Reversed in time the same mask makes a sequence wait at its initial state until its last element comes.
    """
    first = pytree.tree_leaves(x)[0]
    times = torch.arange(first.shape[0], device=first.device)
    alive = times[:, None] < lengths.to(first.device)[None, :]

    def masked(inputs: tuple[Any, Tensor], state: Any, *params: Any) -> Any:
        x_t, now = inputs
        y, after = unpack(step(x_t, state, *params), "scan")

        def choose(new: Tensor, old: Tensor | float) -> Tensor:
            return torch.where(now.view(-1, *[1] * (new.dim() - 1)), new, old)

        y = pytree.tree_map(lambda leaf: choose(leaf, torch.zeros_like(leaf)), y)
        return y, pytree.tree_map(choose, after, state)

    return masked, (x, alive)
