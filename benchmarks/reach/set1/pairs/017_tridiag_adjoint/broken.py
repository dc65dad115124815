"""Thomas algorithm for implicit diffusion steps."""
import torch


def thomas(lower, diag, upper, rhs):
    """Solve with lower[i] = A[i+1, i], upper[i] = A[i, i+1]; diagonally dominant."""
    n = diag.shape[0]
    c, d = [None] * n, [None] * n
    c[0] = upper[0] / diag[0]
    d[0] = rhs[0] / diag[0]
    for i in range(1, n):
        m = diag[i] - lower[i - 1] * c[i - 1]
        if i < n - 1:
            c[i] = upper[i] / m
        d[i] = (rhs[i] - lower[i - 1] * d[i - 1]) / m
    x = [None] * n
    x[-1] = d[-1]
    for i in range(n - 2, -1, -1):
        x[i] = d[i] - c[i] * x[i + 1]
    return torch.stack(x)


class TridiagSolve(torch.autograd.Function):
    @staticmethod
    def forward(ctx, lower, diag, upper, rhs):
        x = thomas(lower, diag, upper, rhs)
        ctx.save_for_backward(lower, diag, upper, x)
        return x

    @staticmethod
    def backward(ctx, gx):
        lower, diag, upper, x = ctx.saved_tensors
        v = thomas(lower, diag, upper, gx)
        return -v[1:] * x[:-1], -v * x, -v[:-1] * x[1:], v


def _diffusion_step(n=6, k=0.3):
    off = torch.full((n - 1,), -k, dtype=torch.float64)
    diag = torch.full((n,), 1 + 2 * k, dtype=torch.float64)
    rhs = torch.randn(n, dtype=torch.float64)
    return off.clone().requires_grad_(), diag.requires_grad_(), off.clone().requires_grad_(), rhs.requires_grad_()


gradsmith_inputs = {"TridiagSolve": _diffusion_step}
