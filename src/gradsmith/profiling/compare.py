"""`--compare`: two subjects on the same inputs, in turns; a ratio with its confidence interval."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gradsmith.lab import resolve
from gradsmith.lab.process.state import preserved
from gradsmith.profiling.bench import Bench
from gradsmith.profiling.clock import Ratio, Spread, interleaved, ratio
from gradsmith.profiling.remedies import equivalent


@dataclass(frozen=True)
class Slowdown:
    """How many times slower `first` is than `second`: forward, backward and both."""

    first: str
    second: str
    forward: Ratio
    backward: Ratio
    both: Ratio
    first_s: float
    second_s: float
    same_results: bool

    def __str__(self) -> str:
        from gradsmith.report.profile_table import duration

        word = "slower" if self.both.value >= 1 else "faster"
        factor = max(self.both.value, 1 / self.both.value)
        low, high = sorted((self.both.low, self.both.high))
        if word == "faster":
            low, high = 1 / high, 1 / low
        certain = "" if low > 1 else "; the interval holds 1, so no difference is certain"
        other = "" if self.same_results else " They do not compute the same."
        return (
            f"{self.first} ({duration(self.first_s)}) is {factor:.2f} times {word} than {self.second} "
            f"({duration(self.second_s)}), 95 % interval {low:.2f} to {high:.2f}{certain}.{other}"
        )


def compare(
    first: Any, second: Any, *inputs: Any, kwargs: dict[str, Any] | None = None, budget: float = 2.0
) -> Slowdown:
    """Time two subjects in turns on the same inputs.

    >>> import torch
    >>> result = compare(torch.tanh, torch.sin, torch.randn(64, requires_grad=True), budget=0.1)
    >>> result.same_results
    False
    """
    a, b = resolve(first), resolve(second)
    with preserved(*inputs, a.module, b.module):
        benches = [Bench.of(t, tuple(inputs), dict(kwargs or {})) for t in (a, b)]
        for bench in benches:
            bench.first()
        agree = equivalent(*benches)
        mine, theirs = interleaved(benches, budget)
    return Slowdown(
        a.name,
        b.name,
        ratio(mine.forward_work, theirs.forward_work),
        ratio(mine.backward_work, theirs.backward_work),
        ratio(mine.work, theirs.work),
        Spread.of(mine.both).median,
        Spread.of(theirs.both).median,
        agree,
    )
