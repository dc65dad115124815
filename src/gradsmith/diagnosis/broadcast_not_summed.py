"""The gradient of a broadcast input is not summed over the broadcast dimension.

An input that was broadcast is used many times, and its gradient is the sum over all uses. Here only one slice of the
sum, or its mean, is returned.
"""

from __future__ import annotations

import torch

from gradsmith.diagnosis.case import Case, Fit

RANK = 25
BAD = """
import torch


class AddBias(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, bias):
        return x + bias

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output, grad_output[0]


def example():
    x = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    return x, torch.randn(3, dtype=torch.float64, requires_grad=True)


gradsmith_inputs = {"AddBias": example}
"""


def fits(case: Case) -> Fit | None:
    v = case.v
    if case.x.numel() >= v.numel():
        return None
    for dim in range(v.ndim):
        for index in {0, v.shape[dim] - 1}:
            part = torch.zeros_like(v)
            part.select(dim, index).copy_(v.select(dim, index))
            truth = case.truth_for(part)
            if truth is not None and v.shape[dim] > 1 and case.matches(case.claimed, truth):
                return Fit(
                    f"is only the part of index {index} along dimension {dim} of the output",
                    f"Sum over dimension {dim}, along which '{case.name}' was broadcast: `.sum_to_size({case.name}.shape)`.",
                )
    return None
