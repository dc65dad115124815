"""Are the times a profile reports those of the same calls when nobody observes them?

The unobserved run is what a user would write: copies of the inputs, forward, backward, `perf_counter` around them. It
shares no code with gradsmith. What a run costs depends on the state of the allocator: torch's CPU allocator is malloc, which
hands large blocks back to the system and then pays a page fault for every 4 KiB when it needs them again. Measured on
torch 2.13: between 0 and 736 faults per run of the pair `clones`, depending on what was alive before, and 0.6 to 2.9 ms. So
both sides make the same copies, keep nothing from one round to the next, and take turns in short blocks in one process; the
figure is the median of the ratios of neighbouring blocks. Nothing else runs between two rounds: `torch.manual_seed` formats
three stack traces, and with it in the loop the unobserved run of `broadcast_sum` was a tenth slower than without.
"""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import torch

import gradsmith as gs

_BLOCKS = 15
_WARM = 2


@dataclass(frozen=True)
class Seconds:
    """Forward and backward together: on the wall, and worked by this thread."""

    wall: float
    worked: float


def agreement(module: ModuleType) -> tuple[float, float]:
    """Reported over unobserved: (on the wall, worked)."""
    walls, works = [], []
    for block in range(_BLOCKS):
        if block % 2:  # whoever goes first inherits what the other left; take turns at that, too
            plain, reported = _unobserved(module), _reported(module)
        else:
            reported, plain = _reported(module), _unobserved(module)
        walls.append(reported.wall / plain.wall)
        works.append(reported.worked / plain.worked)
    return statistics.median(walls), statistics.median(works)


def _reported(module: ModuleType) -> Seconds:
    profile = gs.profile(module.slow, *module.inputs(), budget=0.4, growth=False, select=["run"])
    return Seconds(profile.total_s, profile.work_s)


def _unobserved(module: ModuleType, seconds: float = 0.1) -> Seconds:
    call = module.slow.apply if isinstance(module.slow, type) else module.slow
    parameters = list(call.parameters()) if isinstance(call, torch.nn.Module) else []
    inputs = module.inputs()
    grad_output = torch.randn_like(call(*inputs)).detach()
    samples: list[tuple[Seconds, Seconds]] = []
    end = time.perf_counter() + seconds
    while len(samples) < _WARM + 5 or (time.perf_counter() < end and len(samples) < 300):
        samples.append(_step(call, parameters, inputs, grad_output))
    warm = samples[_WARM:]
    return Seconds(
        statistics.median(f.wall for f, _ in warm) + statistics.median(b.wall for _, b in warm),
        statistics.median(f.worked + b.worked for f, b in warm),
    )


def _step(call: Any, parameters: list[Any], inputs: Any, grad_output: torch.Tensor) -> tuple[Seconds, Seconds]:
    args = [_copied(a) if isinstance(a, torch.Tensor) else a for a in inputs]
    leaves = [a for a in args if isinstance(a, torch.Tensor) and a.requires_grad] + parameters
    arriving = grad_output.clone()
    worked, start = time.thread_time(), time.perf_counter()
    out = call(*args)
    forward = Seconds(time.perf_counter() - start, time.thread_time() - worked)
    worked, start = time.thread_time(), time.perf_counter()
    torch.autograd.grad(out, leaves, arriving, allow_unused=True)
    return forward, Seconds(time.perf_counter() - start, time.thread_time() - worked)


def _copied(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().clone().requires_grad_(tensor.requires_grad)
