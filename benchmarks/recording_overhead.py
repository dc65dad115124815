"""What `gs.record()` costs a training step of about 20 ms that calls 100 small Functions. Target: at most 1.05x.

Run: python benchmarks/recording_overhead.py
Processor time (the machine may be busy); blocks of steps with and without a tape alternate, and the ratio of their medians is printed.
"""

from __future__ import annotations

import statistics
import time

import torch
from torch.autograd import Function

import gradsmith as gs

STEP_SECONDS = 0.020
CALLS = 100
ROUNDS = 8
BLOCK = 25  # steps in a row: a real run is recorded from its start to its end


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


def step(x: torch.Tensor, beta: torch.Tensor, filler: torch.Tensor, products: int) -> float:
    start = time.process_time()
    y = x
    for _ in range(CALLS):
        y = Swish.apply(y, beta)
    y.sum().backward()
    for _ in range(products):
        filler @ filler
    return time.process_time() - start


def main() -> None:
    torch.set_num_threads(1)
    x, beta, filler = torch.randn(16, 8), torch.tensor(1.5, requires_grad=True), torch.randn(256, 256)
    products = 0
    while statistics.median(step(x, beta, filler, products) for _ in range(9)) < STEP_SECONDS:
        products += 1
    plain: list[float] = []
    recorded: list[float] = []
    tape = gs.record()
    with tape:
        step(x, beta, filler, products)  # the first calls of each signature copy their inputs
    for _ in range(ROUNDS):
        plain += [step(x, beta, filler, products) for _ in range(BLOCK)][3:]
        with tape:
            recorded += [step(x, beta, filler, products) for _ in range(BLOCK)][3:]
    a, b = statistics.median(plain), statistics.median(recorded)
    print(f"step {1e3 * a:.2f} ms, with {CALLS} Functions recorded {1e3 * b:.2f} ms: {b / a:.3f}x (target 1.05x)")


if __name__ == "__main__":
    main()
