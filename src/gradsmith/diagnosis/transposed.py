"""The gradient is transposed.

The shapes agree because the matrix is square, but rows and columns are exchanged: with any other shape PyTorch would
have raised. Check with a non-square example.
"""

from __future__ import annotations

from gradsmith.diagnosis.case import Case, Fit

RANK = 17
BAD = """
import torch


class Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x @ y

    @staticmethod
    def backward(ctx, grad_output):
        x, y = ctx.saved_tensors
        return grad_output @ y.t(), (x.t() @ grad_output).t()


def example():
    x = torch.randn(4, 4, dtype=torch.float64, requires_grad=True)
    return x, torch.randn(4, 4, dtype=torch.float64, requires_grad=True)


gradsmith_inputs = {"Product": example}
"""


def fits(case: Case) -> Fit | None:
    if case.claimed.ndim < 2 or not bool(case.known.all()):
        return None
    for a in range(case.claimed.ndim - 1):
        for b in range(a + 1, case.claimed.ndim):
            if case.claimed.shape[a] != case.claimed.shape[b]:
                continue
            turned = case.claimed.transpose(a, b)
            if case.explains(turned):
                dims = f"dimensions {a} and {b}" if case.claimed.ndim > 2 else "rows and columns"
                return Fit(
                    f"is the transpose of the true one ({dims} exchanged)",
                    f"Return the transposed gradient for '{case.name}', and try a non-square example.",
                )
    return None
