"""backward returns zero where the derivative is not.

The gradient is zero at every element, the derivative is not. The input is never trained, and nothing raises. Usual causes:
`torch.zeros_like` that was never filled, a mask that is never true, a detached tensor.
"""

from __future__ import annotations

from gradsmith.diagnosis.case import Case, Fit

RANK = 10
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
        return torch.zeros_like(grad_output) * x


gradsmith_inputs = {"Sine": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
"""


def fits(case: Case) -> Fit | None:
    if case.pair.missing or bool(case.claimed.abs().gt(1e-12 * case.scale).any()):
        return None
    several = len(case.lab.gradient.run.differentiable) > 1
    others = [p for p in case.lab.gradient.pairs if p.leaf is case.pair.leaf and p.output != case.pair.output]
    if several and any(bool(p.claimed.abs().gt(0).any()) for p in others):
        name = case.lab.gradient.run.output_names[case.pair.output]
        return Fit(
            f"ignores what comes back through {name}",
            f"Add the part of the gradient that flows through {name}: its grad_output is not used.",
            cause="output-ignored",
        )
    return Fit("is zero everywhere", f"Return the derivative with respect to '{case.name}'.")
