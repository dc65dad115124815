"""Matrix square root for whitening and Frechet distances."""
import torch


class SqrtPSD(torch.autograd.Function):
    """Square root of a symmetric positive definite matrix (n, n)."""

    @staticmethod
    def forward(ctx, a):
        lam, q = torch.linalg.eigh(0.5 * (a + a.t()))
        root = lam.sqrt()
        ctx.save_for_backward(q, lam, root)
        return (q * root) @ q.t()

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, g):
        q, lam, root = ctx.saved_tensors
        h = q.t() @ (0.5 * (g + g.t())) @ q
        # divided differences of sqrt
        f = 1.0 / (root[:, None] + root[None, :])
        return q @ (f * h) @ q.t()


def _cov(n=4):
    x = torch.randn(32, n, dtype=torch.float64)
    return (x.t() @ x / 32 + torch.diag(torch.arange(n, dtype=torch.float64))).requires_grad_()


gradsmith_inputs = {"SqrtPSD": lambda: (_cov(),)}
