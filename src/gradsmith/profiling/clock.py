"""The timing pass: nothing is observed while the clock runs. Warm, interleaved, median and spread."""

from __future__ import annotations

import gc
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field

from gradsmith.lab import device
from gradsmith.profiling.bench import Bench

_ENOUGH = 0.01  # relative uncertainty of the median at which more rounds teach nothing
_AT_LEAST = 15
_FEW = 5  # rounds worth overdrawing the budget for


@dataclass(frozen=True)
class Spread:
    """Seconds: the median, and the quartiles around it."""

    median: float = 0.0
    low: float = 0.0
    high: float = 0.0

    @staticmethod
    def of(samples: Sequence[float]) -> Spread:
        if not samples:
            return Spread()
        if len(samples) == 1:
            return Spread(samples[0], samples[0], samples[0])
        low, middle, high = statistics.quantiles(samples, n=4, method="inclusive")
        return Spread(middle, low, high)


@dataclass
class Timing:
    """Samples of one bench, round by round: time on the wall, as users feel it, and time worked, for ratios and shares."""

    forward: list[float] = field(default_factory=list)
    backward: list[float] = field(default_factory=list)
    forward_work: list[float] = field(default_factory=list)  # see device.work_clock
    backward_work: list[float] = field(default_factory=list)

    @property
    def both(self) -> list[float]:
        return [f + b for f, b in zip(self.forward, self.backward)] if self.backward else self.forward

    @property
    def work(self) -> list[float]:
        if not self.backward_work:
            return self.forward_work
        return [f + b for f, b in zip(self.forward_work, self.backward_work)]

    @property
    def settled(self) -> bool:
        spread, n = Spread.of(self.both), len(self.both)
        return n >= _AT_LEAST and 1.25 * (spread.high - spread.low) / 1.35 <= _ENOUGH * spread.median * math.sqrt(n)


@dataclass(frozen=True)
class Ratio:
    """How many times slower one is than another, with a 95 % confidence interval."""

    value: float
    low: float
    high: float


def timed(bench: Bench, budget: float = 1.0, rounds: int = 300) -> Timing:
    """Time one bench until the median is known to 1 %, or the budget is spent."""
    return interleaved([bench], budget, rounds)[0]


def interleaved(benches: Sequence[Bench], budget: float = 1.0, rounds: int = 300) -> list[Timing]:
    """Time several benches in turns, so that whatever else the machine does hits them alike."""
    timings = [Timing() for _ in benches]
    gc.collect()  # what was left lying about before is not the subject's; what it leaves itself is, as in a training loop
    clock = device.clock()
    deadline = clock() + budget
    for n in range(-2, rounds):  # two rounds to warm up
        for bench, timing in zip(benches, timings):
            _round(bench, timing if n >= 0 or clock() > deadline else Timing())
        done = len(timings[0].forward)
        late = clock() > deadline and (done >= _FEW or clock() > deadline + 2 * budget)
        if done and (late or all(t.settled for t in timings)):
            break
    return timings


def ratio(slow: Sequence[float], fast: Sequence[float]) -> Ratio:
    """The median of round-by-round ratios; its interval by order statistics, so no shape of noise is assumed."""
    pairs = sorted(a / b for a, b in zip(slow, fast) if b > 0)
    if not pairs:
        return Ratio(math.nan, math.nan, math.nan)
    n = len(pairs)
    reach = 1.96 * math.sqrt(n) / 2
    low, high = max(0, math.floor(n / 2 - reach)), min(n - 1, math.ceil(n / 2 + reach))
    return Ratio(statistics.median(pairs), pairs[low], pairs[high])


def _round(bench: Bench, timing: Timing) -> None:
    clock, work = device.clock(), device.work_clock()
    call = bench.call()
    worked, start = work(), clock()
    call.forward()
    timing.forward.append(clock() - start)
    timing.forward_work.append(work() - worked)
    call.between()
    if not call.has_backward or bench.forward_only:
        return
    worked, start = work(), clock()
    call.backward()
    timing.backward.append(clock() - start)
    timing.backward_work.append(work() - worked)
