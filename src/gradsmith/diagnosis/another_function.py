"""The gradient is the derivative of another function.

What backward returns is grad_output times the derivative of a different, well-known function: sin for cos, tanh for
sigmoid, a formula that was copied from the neighbouring class.
"""

from __future__ import annotations

import torch

from gradsmith.diagnosis.case import Case, Fit

RANK = 95
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
        return -grad_output * torch.sin(x)


gradsmith_inputs = {"Sine": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
"""


_KNOWN = {
    "sin": torch.cos,
    "cos": lambda x: -torch.sin(x),
    "exp": torch.exp,
    "tanh": lambda x: 1 - torch.tanh(x) ** 2,
    "sigmoid": lambda x: torch.sigmoid(x) * (1 - torch.sigmoid(x)),
    "relu": lambda x: (x > 0).to(x.dtype),
    "square": lambda x: 2 * x,
    "x**3": lambda x: 3 * x**2,
    "log": lambda x: 1 / x,
    "1/x": lambda x: -1 / x**2,
    "sqrt": lambda x: 0.5 / x.abs().sqrt(),
    "softplus": torch.sigmoid,
    "atan": lambda x: 1 / (1 + x**2),
    "identity": torch.ones_like,
}


def fits(case: Case) -> Fit | None:
    if not case.elementwise:
        return None
    for name, slope in _KNOWN.items():
        if case.matches(case.claimed, case.v * slope(case.x)):
            return Fit(
                f"is the derivative of {name}",
                f"Return the derivative of what {case.lab.target.name}.forward computes.",
            )
    return None
