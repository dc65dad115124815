"""Are the times a profile reports those of the same calls when nobody observes them?

The unobserved run is the loop that a user writes: call, backward, `perf_counter` around them, the same inputs each time. No code
of gradsmith is in it. What it measures depends on the moment: with other programs at work, two such loops of 0.1 s one after
the other differed by a factor 2 and more in either direction (measured on 2 cores with a load of 4, on the wall and in time worked),
and malloc may be giving memory back to the system in one and not in the other. So the loop takes turns with the profiler: after each
burst of rounds that `gs.profile` has clocked (a few milliseconds, or one longer round), the loop does as many, twice. The first of the
two is what the reported median is compared with. The second is compared with the first in the same way: how far off that comes
out is noise, and no deviation smaller than that says anything about the profiler.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import Any
from unittest.mock import patch

import torch

import gradsmith as gs
from gradsmith.profiling import clock, measuring

_SECONDS = 15.0  # per pair
_BUDGET = 12.0  # of each profile: the loops spend two thirds of it, which leaves what a profile has by default
_PROFILES = 5  # at least


@dataclass(frozen=True)
class Agreement:
    """Medians of forward plus backward: reported over unobserved, and unobserved over unobserved."""

    reported: float
    noise: float


class Loop:
    """The loop that a user writes, with inputs of its own: what the others do to the caches hits it as it hits them."""

    def __init__(self, module: ModuleType) -> None:
        self.call = module.slow.apply if isinstance(module.slow, type) else module.slow
        self.inputs = module.inputs()
        parameters = list(self.call.parameters()) if isinstance(self.call, torch.nn.Module) else []
        self.leaves = [x for x in self.inputs if isinstance(x, torch.Tensor) and x.requires_grad] + parameters
        self.grad_output = torch.randn_like(self.call(*self.inputs)).detach()
        self.forward: list[float] = []
        self.backward: list[float] = []

    def run(self, count: int) -> None:
        """So many rounds; where it is several, one more goes first and does not count, being cold from the interruption."""
        call, inputs, leaves, grad_output = self.call, self.inputs, self.leaves, self.grad_output
        for n in range(count + (count > 1)):
            start = time.perf_counter()
            out = call(*inputs)
            middle = time.perf_counter()
            torch.autograd.grad(out, leaves, grad_output, allow_unused=True)
            end = time.perf_counter()
            del out
            if n == 0 and count > 1:
                continue
            self.forward.append(middle - start)
            self.backward.append(end - middle)

    @property
    def seconds(self) -> float:
        return statistics.median(self.forward) + statistics.median(self.backward)


def agreement(module: ModuleType) -> Agreement:
    """Profile the slow version, several times, each against loops that take turns with it."""
    reported, noise = [], []
    end = time.perf_counter() + _SECONDS
    while len(reported) < _PROFILES or time.perf_counter() < end:
        inputs, first, second = module.inputs(), Loop(module), Loop(module)
        with _taking_turns(first, second):
            profile = gs.profile(module.slow, *inputs, budget=_BUDGET, growth=False, select=["run"])
        reported.append(profile.total_s / first.seconds)
        noise.append(second.seconds / first.seconds)
    return Agreement(statistics.median(reported), statistics.median(noise))


@contextmanager
def _taking_turns(*loops: Loop) -> Iterator[None]:
    """Interrupt the timing pass, and only that: a profile also times other ways to compute the same."""
    timed, burst = measuring.timed, clock._burst

    def interrupted(bench: Any, timing: Any, count: int) -> None:
        burst(bench, timing, count)
        # Who follows the profiler inherits what it left; they take turns at that, too.
        second_first = len(loops[0].forward) // count % 2
        for loop in loops[::-1] if second_first else loops:
            loop.run(count)

    def timing_pass(*args: Any) -> Any:
        with patch.object(clock, "_burst", interrupted):
            return timed(*args)

    with patch.object(measuring, "timed", timing_pass):
        yield
