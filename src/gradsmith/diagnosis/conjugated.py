"""A conjugate is missing.

For complex inputs PyTorch's gradient is the conjugate of the derivative, so that a step along it descends: for x * y the
gradient of x is grad_output * y.conj(). A backward that was written for real numbers lacks it.
"""

from __future__ import annotations

import torch

from gradsmith.diagnosis.case import Case, Fit
from gradsmith.lab.run import normal_like

RANK = 15
BAD = """
import torch


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * 2 * x


gradsmith_inputs = {"Square": lambda: (torch.randn(4, 3, dtype=torch.complex128, requires_grad=True),)}
"""


def fits(case: Case) -> Fit | None:
    if not case.claimed.is_complex():
        return None
    # For a real grad_output, conj(grad_output * d) and grad_output * conj(d) are the same.
    real = normal_like(case.v, case.lab.generator(34)).real.to(case.v.dtype)
    claimed, truth = case.claimed_for(real), case.truth_for(real)
    if claimed is None or truth is None or not case.matches(torch.conj(claimed), truth):
        return None
    return Fit(
        "is the conjugate of the true one for a real grad_output: a conj() is missing",
        f"Multiply grad_output by the conj() of the derivative with respect to '{case.name}'.",
    )
