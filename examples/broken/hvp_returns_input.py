# expect: wrong-gradient
"""Hessian-vector product of sum(x^4) as a Function."""
import torch


class HessianVectorProduct(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, v):
        ctx.save_for_backward(x, v)
        return v.clone()

    @staticmethod
    def backward(ctx, grad_output):
        x, v = ctx.saved_tensors
        hv = 12 * x**2 * grad_output
        return hv, hv


gradsmith_inputs = {
    "HessianVectorProduct": lambda: (
        torch.randn(5, dtype=torch.float64, requires_grad=True),
        torch.randn(5, dtype=torch.float64, requires_grad=True),
    )
}
