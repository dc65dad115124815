import torch
from torch.autograd.function import once_differentiable


class CholeskyFactor(torch.autograd.Function):
    """Lower factor of the symmetric part (a + a^T) / 2, which must be positive definite."""

    @staticmethod
    def forward(ctx, a):
        if a.is_complex():
            raise ValueError("not for complex input")
        if a.dim() != 2 or a.shape[0] != a.shape[1]:
            raise ValueError("one square matrix")
        l, info = torch.linalg.cholesky_ex((a + a.T) / 2)
        if int(info):
            raise ValueError("not positive definite")
        ctx.save_for_backward(l)
        return l

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        (l,) = ctx.saved_tensors
        phi = (l.T @ g).tril()
        phi = phi - 0.5 * torch.diag(phi.diagonal())
        s = torch.linalg.solve_triangular(l.T, phi, upper=True)
        s = torch.linalg.solve_triangular(l, s, upper=False, left=False)
        return (s + s.T) / 2


def example():
    torch.manual_seed(0)
    b = torch.randn(3, 3, dtype=torch.float64)
    return ((b @ b.T + torch.eye(3, dtype=torch.float64)).requires_grad_(),)


gradsmith_inputs = {"CholeskyFactor": example}
