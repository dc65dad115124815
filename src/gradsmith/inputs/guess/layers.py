"""Sizes that fit a module: what its parts say they take, and a time dimension long enough to show a loop."""

from __future__ import annotations

import torch
from torch import nn

from gradsmith.inputs.guess.proposals import FRAMES, Frame
from gradsmith.source.lexicon import INPUT_WIDTHS
from gradsmith.source.loaded import method_of
from gradsmith.source.loops import loops_of

TIME = 12  # steps: an error that grows or fades with time is visible, a check stays fast


def frames_of(module: nn.Module) -> list[Frame]:
    """Frames whose main input fits the first part of the module that states a size."""
    sizes: list[int] = []
    channels: list[int] = []
    for part in module.modules():
        for name in INPUT_WIDTHS:
            value = getattr(part, name, None)
            value = value[-1] if isinstance(value, tuple) and value else value
            if isinstance(value, int):
                (channels if name in ("in_channels", "num_features") else sizes).append(value)
    sizes += [int(p.shape[-1]) for p in module.parameters() if p.ndim > 1]
    made: list[Frame] = []
    for d in dict.fromkeys(sizes):
        made += [Frame((2, TIME), d), Frame((3,), d)] if loops(module) else [Frame((3,), d), Frame((2, TIME), d)]
    for c in dict.fromkeys(channels):
        made += [Frame((2, c, 9), 8), Frame((2, c), 9), Frame((5,), c)]
    return [*made[:8], *FRAMES]


def loops(module: nn.Module) -> bool:
    """Whether a forward of the module has a loop of its own: then it most likely walks through time."""
    for part in module.modules():
        forward = method_of(type(part).forward) if not type(part).__module__.startswith("torch.") else None
        if forward is not None and loops_of(forward):
            return True
    return any(isinstance(part, nn.RNNBase) for part in module.modules())


def precision_of(module: nn.Module) -> torch.dtype:
    return next((p.dtype for p in module.parameters() if p.is_floating_point()), torch.float64)
