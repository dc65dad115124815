import torch
from torch.autograd.function import once_differentiable


class SPDSqrt(torch.autograd.Function):
    """Square root of the symmetric part of a positive definite matrix."""

    @staticmethod
    def forward(ctx, a):
        if a.is_complex():
            raise ValueError("real input only")
        if a.dim() != 2 or a.shape[0] != a.shape[1]:
            raise ValueError("one square matrix")
        w, q = torch.linalg.eigh((a + a.T) / 2)
        if not bool((w > 0).all()):
            raise ValueError("not positive definite")
        ctx.save_for_backward(w, q)
        return (q * w.sqrt()) @ q.T

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        w, q = ctx.saved_tensors
        f = w.sqrt()
        gap = w[:, None] - w[None, :]
        gap.fill_diagonal_(1.0)
        k = (f[:, None] - f[None, :]) / gap + torch.diag(0.5 / f)
        m = q @ (k * (q.T @ ((g + g.T) / 2) @ q)) @ q.T
        return (m + m.T) / 2


def example():
    torch.manual_seed(1)
    b = torch.randn(3, 3, dtype=torch.float64)
    return ((b @ b.T + torch.diag(torch.tensor([1.0, 2.0, 4.0], dtype=torch.float64))).requires_grad_(),)


gradsmith_inputs = {"SPDSqrt": example}
