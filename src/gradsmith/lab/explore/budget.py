"""How often a subject may run during one check: a number that follows from the rounded cost of one run, never a clock.

The cost is CPU time, the smaller of two measurements, rounded to a power of four: the same on a machine that is busy, and
on most that are faster or slower. What it allows is a power of two. A cheap forward never comes near it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TypeVar

import torch

from gradsmith.lab.run import Allowance, Spent, runs_left

T = TypeVar("T")

_UNIT = 1e-3  # s; nothing is cheaper than that
_EXPENSIVE = 1e-2  # s; from here on, runs are saved
_OF_UNIT = {"quick": 4096, "standard": 8192, "deep": 65536}  # runs of one check, for a subject that costs one unit
_GRADIENT = 64  # runs that the judgement of the gradient gets at least, beside all others
_INTERPRETED = 20.0  # s of CPU time for it, before rounding, where kernels are interpreted
_EXAMPLES = {"quick": 0, "standard": 128, "deep": 512}  # explored ones, at most
# s of CPU time for them, before rounding: so much that subjects of one and of four units are promised equally many, since what
# a first run loads may be the difference.
_EXPLORING = {"quick": 0.0, "standard": 2.56, "deep": 16.0}
_RUNS = 5  # of the subject, for an explored example that is right


@dataclass(frozen=True)
class Budget:
    """What one check may use. `cost` is that of one forward and backward in seconds, rounded."""

    cost: float
    runs: int
    examples: int
    gradient: int = field(default=_GRADIENT, repr=False)  # runs for its judgement, at least
    interpreted: int = field(default=0, repr=False)  # runs for the cause of a wrong number in a kernel, at least

    def for_kernels(self) -> Budget:
        """The same where kernels are interpreted, which is slow whatever they are: the gradient gets more runs, and its cause."""
        affordable = max(_GRADIENT, _power_of_two(_INTERPRETED / self.cost))
        return replace(self, gradient=min(4 * _GRADIENT, affordable), interpreted=min(16 * _GRADIENT, affordable))

    @property
    def diagnosis(self) -> int:
        """Runs for the cause of a wrong number."""
        return max(8, self.runs // 8, self.interpreted)

    @property
    def expensive(self) -> bool:
        return self.cost > _EXPENSIVE

    @property
    def words(self) -> str:
        """Why something was left out."""
        return f"forward and backward take about {self.cost:.1g} s"

    def whole(self) -> Allowance:
        """For all probes together."""
        return Allowance(self.runs, self.cost)

    def share(self, whole: Allowance) -> Allowance:
        """For one probe: half of what is left, so that those after it get something, too."""
        return Allowance(max(1, whole.left // 2), self.cost)

    def once_wrong(self, whole: Allowance) -> None:
        """Where runs are dear, most of what could be found beside a wrong gradient can wait until that is mended."""
        if self.expensive:
            whole.runs = min(whole.runs, whole.used + max(8, self.runs // 4))

    def for_exploring(self) -> Allowance:
        """For all explored examples of the probe that asks first: nearly all it has, so that what was found is kept."""
        return Allowance(max(0, runs_left(self.runs) - 1), self.cost)

    def for_replaying(self) -> Allowance:
        """For what failed in earlier runs: beside all others, so that whether something was kept changes nothing else."""
        return Allowance(self.runs, self.cost, reserved=True)

    def for_diagnosis(self) -> Allowance:
        """For the cause of a wrong number: a help, without which the number stands."""
        return Allowance(self.diagnosis, self.cost, reserved=True)

    def for_gradient(self) -> Allowance:
        """For the judgement of the gradient, which comes before everything else and takes nothing from it."""
        return Allowance(max(self.runs, self.gradient), self.cost, reserved=True)


def budget_of(level: str, cost: float) -> Budget:
    """The budget at this level for a subject of this cost.

    >>> budget_of("standard", 0.1), budget_of("standard", 1e-5).runs
    (Budget(cost=0.256, runs=32, examples=4), 8192)
    """
    times = 4 ** math.ceil(math.log(max(cost, _UNIT) / _UNIT, 4))  # rounded up: the runs together are never longer
    rounded = _UNIT * times
    fits = _EXPLORING[level] / (rounded * _RUNS)
    examples = max(4, min(_EXAMPLES[level], _power_of_two(fits))) if _EXAMPLES[level] else 0
    return Budget(rounded, max(1, _OF_UNIT[level] // times), examples)


def cost_of(run: Callable[[], object]) -> float:
    """The CPU time of one run: where it is more than one unit, the shorter of two, since the first may load something.

    In one thread, and of this one: several wait for each other by counting, which takes the more time the busier the machine is.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        first = _seconds(run)
        return first if first < _UNIT else min(first, _seconds(run))
    finally:
        torch.set_num_threads(threads)


def within(allowance: Allowance, question: Callable[[], T]) -> T | None:
    """The answer, if it takes no more runs than that; None where it takes more."""
    try:
        with allowance:
            return question()
    except Spent as spent:
        if spent.allowance.entered:
            raise
        return None


def _seconds(run: Callable[[], object]) -> float:
    start = time.thread_time()
    run()
    return time.thread_time() - start


def _power_of_two(number: float) -> int:
    return 1 << int(math.log2(max(number, 1.0)))
