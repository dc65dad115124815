"""Hooks that clip, add noise to and log a gradient, and are removed again.

    dx' = h(dx)          (h is called with each gradient of x as it arrives, and may replace it)

Teaches: a hook returns a new tensor (or None to leave the gradient alone); it never writes into the one it was given,
    which other branches share. Every registration returns a handle, and a hook lives until handle.remove(): a context
    manager cannot forget it. A logging hook keeps numbers, not tensors, or it keeps the whole step alive.
When not to use it: for a fixed change at a fixed place a Function (clip.py, noise.py) is visible in the model's code.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

TEACHES = "return a new gradient, never edit the given one, and remove every hook you register"
SECOND_ORDER = False
COMPILES = False

Hook = Callable[[Tensor], Tensor | None]


def clip(limit: float) -> Hook:
    return lambda gradient: gradient.clamp(-limit, limit)


def add_noise(sigma: float, generator: torch.Generator | None = None) -> Hook:
    def noisy(gradient: Tensor) -> Tensor:
        noise = torch.empty_like(gradient).normal_(std=sigma, generator=generator)
        return gradient + noise

    return noisy


def log_norm(into: list[float]) -> Hook:
    """Appends the gradient's norm, as a number: one wait for the device per call."""

    def log(gradient: Tensor) -> None:
        into.append(gradient.norm().item())

    return log


@contextmanager
def hooked(tensor: Tensor, *hooks: Hook) -> Iterator[None]:
    """The hooks act on the tensor's gradient inside the block, in this order, and are gone after it."""
    handles = [tensor.register_hook(hook) for hook in hooks]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


gradsmith_inputs = {}  # no Function of ours here: hooks act on other people's gradients
