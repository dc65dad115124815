"""Recompute instead of save: a block, or a sequence of layers in segments.

torch.utils.checkpoint without reentry does the work: parameters get their gradients because autograd sees them, the
random state of forward is replayed, and second derivatives pass. What is here chooses the segments, checks what can be
checked, and runs plainly under torch.func, where saved-tensor hooks are not allowed, and under a tracer.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint as _checkpoint

from gradsmith.ops.route import is_compiling, transformed, without_data


def checkpoint(block: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """block(*args, **kwargs), of which only the inputs are kept; backward runs it again, with the same random numbers.

    >>> import torch
    >>> layer, x = nn.Linear(2, 2), torch.ones(1, 2)
    >>> checkpoint(layer, x).sum().backward(); layer.bias.grad
    tensor([1., 1.])
    """
    if not callable(block):
        raise TypeError(f"checkpoint: block must be a module or function, not {type(block).__name__}.")
    # A tracer writes down what the block computes; there is nothing to save, so nothing to make again.
    traced = any(isinstance(x, Tensor) and without_data(x) for x in args)
    if traced or (transformed() and not is_compiling()):
        return block(*args, **kwargs)
    return _checkpoint(block, *args, use_reentrant=False, preserve_rng_state=True, **kwargs)


def checkpoint_sequence(layers: Sequence[Callable[..., Any]] | nn.Sequential, x: Tensor, segments: int | None = None) -> Tensor:  # fmt: skip
    """The layers one after the other, in segments of which only the inputs are kept.

    By default about sqrt(n) segments: then what is kept and what one segment makes while it is recomputed are both small.

    >>> import torch
    >>> checkpoint_sequence([torch.sin, torch.cos, torch.tanh], torch.zeros(1))
    tensor([0.7616])
    """
    steps: list[Any] = list(layers)
    if not steps:
        raise ValueError("checkpoint_sequence: there are no layers.")
    count = max(1, round(math.sqrt(len(steps)))) if segments is None else segments
    if not 1 <= count <= len(steps):
        raise ValueError(f"checkpoint_sequence: segments must be between 1 and {len(steps)} (layers); it is {count}.")
    bounds = [len(steps) * k // count for k in range(count + 1)]
    for first, last in itertools.pairwise(bounds):
        x = checkpoint(_Segment(steps[first:last]), x)
    return x


class _Segment:
    """Some layers, one after the other."""

    def __init__(self, layers: Sequence[Callable[..., Any]]) -> None:
        self.layers = layers

    def __call__(self, x: Any) -> Any:
        for layer in self.layers:
            x = layer(x)
        return x


class Checkpoint(nn.Module):
    """A module of which only the inputs are kept while training.

    >>> Checkpoint(nn.Linear(2, 3))
    Checkpoint(
      (block): Linear(in_features=2, out_features=3, bias=True)
    )
    """

    def __init__(self, block: nn.Module) -> None:
        super().__init__()
        self.block = block

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return checkpoint(self.block, *args, **kwargs)
