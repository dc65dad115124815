"""grad_output is not a factor of the gradient.

What backward returns is the derivative itself, not its product with grad_output: the chain rule stops here.
"""

from __future__ import annotations

import torch

from gradsmith.diagnosis.case import Case, Fit

RANK = 60
BAD = """
import torch


class Sine(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.sin(x)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return torch.cos(x)


gradsmith_inputs = {"Sine": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
"""


def fits(case: Case) -> Fit | None:
    truth = case.truth_for(torch.ones_like(case.v))
    if truth is None or not case.matches(case.claimed, truth):
        return None
    return Fit("is not multiplied by grad_output", f"Multiply what backward returns for '{case.name}' by grad_output.")
