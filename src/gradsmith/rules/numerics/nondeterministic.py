"""The same call with the same seed gives other bits.

What it finds
-------------
forward and backward are run three times with every known random generator seeded alike. The largest difference between
the runs is reported; it is a measurement, not a verdict.

Why it matters
--------------
Sums in the order in which threads arrive (atomics), hash orders and clocks make a run impossible to repeat, and a regression
test on the gradient flaky. gradcheck calls it "not reentrant" and fails.

Known problems
--------------
On the CPU with one thread most races never show. Differences beyond rounding belong to not-repeatable and random-backward.

References
----------
https://github.com/pytorch/pytorch/issues/13818, https://github.com/graphdeco-inria/gaussian-splatting/issues/423
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradsmith.findings import Finding

if TYPE_CHECKING:
    from gradsmith.lab import Lab

CODE = "GS311"
SEVERITY = "info"
WAIVED_BY = ("noise",)
LEVEL = "standard"
BAD = '''
import os

import torch


class UnorderedSum(torch.autograd.Function):
    """Adds in whatever order comes first, as atomics do."""

    @staticmethod
    def forward(ctx, x):
        ctx.shape = x.shape
        order = torch.Generator().manual_seed(int.from_bytes(os.urandom(4), "big"))
        total = x.new_zeros(())
        for i in torch.randperm(x.numel(), generator=order).tolist():
            total = total + x.reshape(-1)[i]
        return total

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output.expand(ctx.shape)


def example():
    return (torch.cat([torch.tensor([1e8, -1e8, 1e7, -1.3e7]), torch.rand(40)]).requires_grad_(),)


gradsmith_inputs = {"UnorderedSum": example}
'''
GOOD = BAD.replace('int.from_bytes(os.urandom(4), "big")', "os.cpu_count() * 0").replace(
    "in whatever order comes first, as atomics do", "in a fixed order"
)


def probe(lab: Lab) -> Iterator[Finding]:
    from gradsmith.lab.conditions.repeats import spread

    found = spread(lab)
    if found.relative > 0:
        yield lab.finding(
            f"{lab.target.name} is not deterministic: {found.what} differs by up to {found.relative:.2g} of its size between "
            "two calls with the same inputs and the same seed.",
            evidence={"relative": found.relative},
            advice="Fix the order of summation, or test with a tolerance above this spread.",
        )
