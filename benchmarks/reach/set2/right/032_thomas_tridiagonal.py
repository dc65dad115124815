from torch.autograd.function import once_differentiable
import torch


def thomas(lower, diag, upper, rhs):
    n = diag.numel()
    c, d = [], []
    for i in range(n):
        den = diag[i] - (lower[i - 1] * c[i - 1] if i else 0)
        c.append(upper[i] / den if i < n - 1 else None)
        d.append((rhs[i] - (lower[i - 1] * d[i - 1] if i else 0)) / den)
    x = [d[-1]]
    for i in range(n - 2, -1, -1):
        x.append(d[i] - c[i] * x[-1])
    return torch.stack(x[::-1])


class TridiagonalSolve(torch.autograd.Function):
    """Solve a diagonally dominant tridiagonal system: lower (n-1), diag (n), upper (n-1), rhs (n)."""

    @staticmethod
    def forward(ctx, lower, diag, upper, rhs):
        x = thomas(lower, diag, upper, rhs)
        ctx.save_for_backward(lower, diag, upper, x)
        return x

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_output):
        lower, diag, upper, x = ctx.saved_tensors
        lam = thomas(upper, diag, lower, grad_output)
        return -lam[1:] * x[:-1], -lam * x, -lam[:-1] * x[1:], lam


gradsmith_inputs = {
    "TridiagonalSolve": lambda: (
        torch.rand(4, dtype=torch.float64, requires_grad=True),
        (torch.rand(5, dtype=torch.float64) + 3).requires_grad_(),
        torch.rand(4, dtype=torch.float64, requires_grad=True),
        torch.randn(5, dtype=torch.float64, requires_grad=True),
    )
}
