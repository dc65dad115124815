import torch
from torch.autograd.function import once_differentiable


class TridiagonalSolve(torch.autograd.Function):
    """Solves the real tridiagonal system with diagonals lower (n-1,), main (n,), upper (n-1,) for rhs (n,)."""

    @staticmethod
    def forward(ctx, lower, main, upper, rhs):
        n = main.numel()
        if main.dim() != 1 or rhs.shape != main.shape or lower.shape != (n - 1,) or upper.shape != (n - 1,):
            raise ValueError("lower (n-1,), main (n,), upper (n-1,), rhs (n,)")
        m = torch.diag(main) + torch.diag(lower, -1) + torch.diag(upper, 1)
        if m.is_complex():
            raise ValueError("real systems only")
        x = torch.linalg.solve(m, rhs)
        ctx.save_for_backward(m, x)
        return x

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        m, x = ctx.saved_tensors
        g = torch.linalg.solve(m.t(), grad)
        return -g[:-1] * x[1:], -g * x, -g[1:] * x[:-1], g


gradsmith_inputs = {
    "TridiagonalSolve": lambda: (
        torch.randn(4, requires_grad=True),
        (torch.rand(5) + 3).requires_grad_(),
        torch.randn(4, requires_grad=True),
        torch.randn(5, requires_grad=True),
    )
}
