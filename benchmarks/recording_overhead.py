"""What `gs.record()` costs a training step of 20 ms that calls 100 small Functions, after the first 3 calls of each.

Run: python benchmarks/recording_overhead.py          (about 25 s; exit status 1: goal missed, 2: no verdict)

The goal is at most 1.05x of the step without a tape. 100 different classes are called once in each step. Two sets of the same
100 classes take turns, one step each, while one tape runs: it hears the first set, and passes over the second because that
says to be torch's own (`__module__`), so its methods stay as they were written. What else the machine does then touches both
halves of each pair of neighbours. Printed are the median of the pairs' ratios, their quartiles, and the 95 % interval of the
median (bootstrap), of processor time and of wall time. The upper end of the interval of processor time decides.
"""

from __future__ import annotations

import random
import statistics
import sys
import time
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.autograd import Function

import gradsmith as gs

GOAL = 1.05
STEP_SECONDS = 0.020
FUNCTIONS = 100
PAIRS = 400
WARM = 10  # pairs that are not counted: the first three calls of each Function copy their inputs


def swish_class(number: int, module: str = __name__) -> type[Function]:
    class Swish(Function):
        @staticmethod
        def forward(ctx, x, beta):
            ctx.save_for_backward(x, beta)
            return x * torch.sigmoid(beta * x)

        @staticmethod
        def backward(ctx, grad_output):
            x, beta = ctx.saved_tensors
            s = torch.sigmoid(beta * x)
            return grad_output * (s + x * beta * s * (1 - s)), (grad_output * x * x * s * (1 - s)).sum()

    Swish.__module__ = module
    Swish.__name__ = Swish.__qualname__ = f"Swish{number}"
    return Swish


@dataclass(frozen=True)
class Step:
    """Processor and wall seconds."""

    cpu: float
    wall: float


def step(classes: list[type[Function]], x: Tensor, beta: Tensor, filler: Tensor, products: int) -> Step:
    cpu, wall = time.process_time(), time.perf_counter()
    y = x
    for cls in classes:
        y = cls.apply(y, beta)
    y.sum().backward()
    for _ in range(products):
        filler @ filler
    return Step(time.process_time() - cpu, time.perf_counter() - wall)


def main() -> int:
    torch.set_num_threads(1)
    heard = [swish_class(i) for i in range(FUNCTIONS)]
    unheard = [swish_class(i, "torch.unheard") for i in range(FUNCTIONS)]
    x, beta, filler = torch.randn(16, 8), torch.tensor(1.5, requires_grad=True), torch.randn(128, 128)
    products = 0
    while min(step(unheard, x, beta, filler, products).cpu for _ in range(7)) < STEP_SECONDS:
        products += 1 + products // 8
    plain: list[Step] = []
    recorded: list[Step] = []
    with gs.record() as tape:
        for pair in range(WARM + PAIRS):
            for steps, classes in ((plain, unheard), (recorded, heard))[:: 1 if pair % 2 else -1]:
                steps.append(step(classes, x, beta, filler, products))
    assert all(tape.count(cls) == WARM + PAIRS for cls in heard)
    assert set(tape.functions) == set(heard)
    plain, recorded = plain[WARM:], recorded[WARM:]
    measured = statistics.median(s.cpu for s in plain)
    print(f"step {1e3 * measured:.2f} ms, {FUNCTIONS} Functions, {PAIRS} pairs of steps")
    worst = _ratio("processor time", [b.cpu / a.cpu for a, b in zip(plain, recorded)])
    _ratio("wall time", [b.wall / a.wall for a, b in zip(plain, recorded)])
    added = statistics.median(b.cpu - a.cpu for a, b in zip(plain, recorded)) / FUNCTIONS
    print(f"one recorded call adds {1e6 * added:.1f} us")
    if not 0.8 * STEP_SECONDS <= measured <= 1.3 * STEP_SECONDS:
        # The machine changed its speed after the step was made: a ratio of another step says nothing about the goal.
        print(f"no verdict: the step took {1e3 * measured:.1f} ms, not {1e3 * STEP_SECONDS:.0f}; run again")
        return 2
    print(f"goal {GOAL}x: {'reached' if worst <= GOAL else 'MISSED'}")
    return 0 if worst <= GOAL else 1


def _ratio(what: str, ratios: list[float]) -> float:
    low, middle, high = statistics.quantiles(ratios, n=4)
    draw = random.Random(0)
    medians = sorted(statistics.median(draw.choices(ratios, k=len(ratios))) for _ in range(1000))
    print(f"{what}: {middle:.3f}x, 95 % {medians[24]:.3f} to {medians[974]:.3f}; quartiles {low:.3f} to {high:.3f}")
    return medians[974]


if __name__ == "__main__":
    sys.exit(main())
