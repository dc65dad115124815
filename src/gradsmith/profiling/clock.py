"""The timing pass: nothing is observed while the clock runs. Warm, interleaved, median and spread."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch

from gradsmith.lab.process import device
from gradsmith.profiling.bench import Bench, ReadyCall

_ENOUGH = 0.01  # relative uncertainty of the median at which more rounds teach nothing
_AT_LEAST, _AT_MOST = 15, 300
_FEW = 5  # rounds worth overdrawing the budget for
# Short runs go one after the other without anything between them: what readies a run pushes the subject out of the caches, and
# made a product of four elements 1.11 times slower than a plain loop, torch.neg of one 1.22 times (measured on torch 2.13).
_BURST_S, _BURST = 10e-3, 16


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
    disturbed: float = 0.0  # the share of the time in which others had the processor

    @property
    def both(self) -> list[float]:
        return [f + b for f, b in zip(self.forward, self.backward)] if self.backward else self.forward

    @property
    def work(self) -> list[float]:
        if not self.backward_work:
            return self.forward_work
        return [f + b for f, b in zip(self.forward_work, self.backward_work)]

    def settled(self, least: int = _AT_LEAST) -> bool:
        spread, n = Spread.of(self.both), len(self.both)
        return n >= least and 1.25 * (spread.high - spread.low) / 1.35 <= _ENOUGH * spread.median * math.sqrt(n)

    def add(self, other: Timing) -> None:
        """Take the rounds of another moment as well."""
        self.forward += other.forward
        self.backward += other.backward
        self.forward_work += other.forward_work
        self.backward_work += other.backward_work


@dataclass(frozen=True)
class Ratio:
    """How many times slower one is than another, with a 95 % confidence interval."""

    value: float
    low: float
    high: float


def timed(bench: Bench, budget: float = 1.0, least: int = _AT_LEAST, most: int = _AT_MOST) -> Timing:
    """Time one bench until the median is known to 1 %, or the budget is spent."""
    return interleaved([bench], budget, least, most)[0]


def interleaved(
    benches: Sequence[Bench], budget: float = 1.0, least: int = _AT_LEAST, most: int = _AT_MOST
) -> list[Timing]:
    """Time several benches in turns, so that whatever else the machine does hits them alike."""
    clock = device.clock()
    deadline = clock() + budget
    warm = [_warmed_up(bench) for bench in benches]
    longest = max(timing.both[0] for timing in warm)
    # Longer runs one by one, by the time worked: beside busy processes none of a few may be left alone on the wall.
    in_a_row = _BURST if _BURST * longest <= _BURST_S and all(bench.shares for bench in benches) else 1
    # What takes longer than the budget is not run for nothing.
    timings = warm if clock() > deadline else [Timing() for _ in benches]

    def finished() -> bool:
        done = len(timings[0].forward)
        late = clock() > deadline and (done >= _FEW or clock() > deadline + 2 * budget)
        return done >= most or (done > 0 and (late or all(t.settled(least) for t in timings)))

    while not finished():
        count = max(1, min(in_a_row, most - len(timings[0].forward)))
        for bench, timing in zip(benches, timings):
            _burst(bench, timing, count)
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


def _warmed_up(bench: Bench) -> Timing:
    timing, call = Timing(), bench.call()
    _run(bench, call, timing, device.work_clock())
    bench.learn(call)
    return timing


def _burst(bench: Bench, timing: Timing, count: int) -> None:
    """So many rounds with nothing between them: the calls are made ready before. Where it is several, one more goes first, and does not
    count: it finds the caches as others left them.

    Reading the time worked is a system call. On a busy machine that is where other processes get their turn, and a short run
    then begins with cold caches (profile_pairs/clones.py: 4 % slower); the median of short runs on the wall needs no such care.
    """
    work = device.work_clock() if count == 1 else device.clock()
    calls = [bench.call() for _ in range(count + (count > 1))]
    if count > 1:
        _run(bench, calls.pop(), Timing(), work)
    while calls:
        _run(bench, calls.pop(), timing, work)


def _run(bench: Bench, call: ReadyCall, timing: Timing, work: Callable[[], float]) -> None:
    """`call.forward()` and `call.backward()`, written out so that nothing but the subject is between two looks at the clock."""
    clock = device.clock()
    function, args, kwargs = call.function, call.args, call.kwargs
    worked, start = work(), clock()
    call.result = function(*args, **kwargs)
    end = clock()
    timing.forward_work.append(work() - worked)
    timing.forward.append(end - start)
    call.between()
    if not call.has_backward or bench.forward_only:
        return
    outputs, leaves, arriving = call.outputs, call.leaves, call.grad_outputs
    worked, start = work(), clock()
    torch.autograd.grad(outputs, leaves, arriving, allow_unused=True)
    end = clock()
    timing.backward_work.append(work() - worked)
    timing.backward.append(end - start)
