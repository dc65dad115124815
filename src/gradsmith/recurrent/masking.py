"""Sequences of different lengths: after its end a sequence keeps its state and outputs zeros."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence
from torch.utils import _pytree as pytree

from .fallback import Step, unpack


def check_lengths(given: Any, steps: int, batch: int, batched: bool) -> Tensor:
    lengths: Tensor = torch.as_tensor(given)
    if not batched:
        lengths = lengths.reshape(1)
    if lengths.shape != (batch,):
        raise ValueError(f"Recurrent: lengths has shape {tuple(lengths.shape)}, but the batch has {batch} sequences.")
    if lengths.dtype.is_floating_point or lengths.dtype is torch.bool:
        raise ValueError(f"Recurrent: lengths must be whole numbers, not {lengths.dtype}.")
    if int(lengths.max()) > steps or int(lengths.min()) < 1:
        raise ValueError(
            f"Recurrent: lengths must lie between 1 and the {steps} time steps of x, found {int(lengths.min())} to {int(lengths.max())}."
        )
    return lengths


def mask_steps(step: Step, x: Tensor, lengths: Tensor) -> tuple[Step, tuple[Tensor, Tensor]]:
    """The step that stands still where a sequence has ended, and the input that tells it so.

    Reversed in time the same mask makes a sequence wait at its initial state until its last element comes.
    """
    times = torch.arange(x.shape[0], device=x.device)
    alive = times[:, None] < lengths.to(x.device)[None, :]

    def masked(inputs: tuple[Tensor, Tensor], state: Any) -> Any:
        x_t, now = inputs
        y, after = unpack(step(x_t, state), "Recurrent")

        def choose(new: Tensor, old: Tensor | float) -> Tensor:
            return torch.where(now.view(-1, *[1] * (new.dim() - 1)), new, old)

        y = pytree.tree_map(lambda leaf: choose(leaf, torch.zeros_like(leaf)), y)
        return y, pytree.tree_map(choose, after, state)

    return masked, (x, alive)


def repack(y: Any, like: PackedSequence) -> PackedSequence:
    """`y`, padded and in the caller's order, packed as `like` was."""
    lengths = (like.batch_sizes[:, None] > torch.arange(int(like.batch_sizes[0]))[None]).sum(0)
    ordered = y if like.sorted_indices is None else y.index_select(1, like.sorted_indices)
    packed = pack_padded_sequence(ordered, lengths)
    return PackedSequence(packed.data, packed.batch_sizes, like.sorted_indices, like.unsorted_indices)
