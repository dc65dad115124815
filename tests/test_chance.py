"""Functions that take another way by chance."""

from __future__ import annotations

import random

import torch

import gradsmith as gs


class SometimesPicky(torch.autograd.Function):
    """Under half of the seeds it does not want such inputs at all."""

    @staticmethod
    def forward(ctx, x):
        if random.random() > 0.5:
            raise ValueError("not such an input")
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return 2 * x * grad_output


def test_a_forward_that_raises_under_some_seeds_is_reported_on():
    x = torch.randn(3, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(2)).requires_grad_()
    for seed in range(6):
        report = gs.check(SometimesPicky, x, seed=seed, isolate=False)
        assert report.subjects[0].verdict in ("verified", "unverified", "refuted")
