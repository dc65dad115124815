"""What `gs.record()` costs a training step of 20 ms that calls 100 small Functions, after the first 3 calls of each.

Run: python benchmarks/recording_overhead.py          (about 20 s; exit status 1: goal missed, 2: no verdict)

The goal is at most 1.05x of the step without a tape. 100 different classes are called once in each step. Short blocks of
steps with and without a tape alternate, in turn one and the other first, and each pair of neighbours gives one ratio: what
else the machine does then touches both. Printed are the median and the quartiles of these ratios, of processor time and of
wall time. Processor time decides, because only it survives a busy machine; on an idle one they agree.
"""

from __future__ import annotations

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
PAIRS = 61
BLOCK = 6  # steps in a row, of which the first two settle Python's caches after the classes were changed


def swish_class(number: int) -> type[Function]:
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
    classes = [swish_class(i) for i in range(FUNCTIONS)]
    x, beta, filler = torch.randn(16, 8), torch.tensor(1.5, requires_grad=True), torch.randn(128, 128)
    products = 0
    while min(step(classes, x, beta, filler, products).cpu for _ in range(7)) < STEP_SECONDS:
        products += 1 + products // 8
    tape = gs.record()

    def block(recorded: bool) -> Step:
        if recorded:
            with tape:
                steps = [step(classes, x, beta, filler, products) for _ in range(BLOCK)][2:]
        else:
            steps = [step(classes, x, beta, filler, products) for _ in range(BLOCK)][2:]
        return Step(min(s.cpu for s in steps), min(s.wall for s in steps))  # others only ever add

    block(recorded=True)  # the first three calls of each Function copy their inputs
    plain: list[Step] = []
    recorded: list[Step] = []
    for pair in range(PAIRS):
        for with_tape in (False, True) if pair % 2 else (True, False):
            (recorded if with_tape else plain).append(block(with_tape))
    assert all(tape.count(cls) == (PAIRS + 1) * BLOCK for cls in classes)
    print(f"step {1e3 * statistics.median(s.cpu for s in plain):.2f} ms, {FUNCTIONS} Functions, {PAIRS} pairs")
    cpu = _ratio("processor time", [b.cpu / a.cpu for a, b in zip(plain, recorded)])
    _ratio("wall time", [b.wall / a.wall for a, b in zip(plain, recorded)])
    added = statistics.median(b.cpu - a.cpu for a, b in zip(plain, recorded)) / FUNCTIONS
    print(f"one recorded call adds {1e6 * added:.1f} us")
    measured = statistics.median(s.cpu for s in plain)
    if not 0.8 * STEP_SECONDS <= measured <= 1.3 * STEP_SECONDS:
        # The machine changed its speed after the step was made: a ratio of another step says nothing about the goal.
        print(f"no verdict: the step took {1e3 * measured:.1f} ms, not {1e3 * STEP_SECONDS:.0f}; run again")
        return 2
    print(f"goal {GOAL}x: {'reached' if cpu <= GOAL else 'MISSED'}")
    return 0 if cpu <= GOAL else 1


def _ratio(what: str, ratios: list[float]) -> float:
    low, middle, high = statistics.quantiles(ratios, n=4)
    print(f"{what}: {middle:.3f}x, quartiles {low:.3f} to {high:.3f}")
    return middle


if __name__ == "__main__":
    sys.exit(main())
