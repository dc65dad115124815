import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable


class CholeskyOfSymmetrised(Function):
    """Cholesky factor of the symmetric part of A, by Murray's formula with Phi."""

    @staticmethod
    def forward(ctx, a):
        if a.dim() < 2 or a.size(-1) != a.size(-2) or not a.is_floating_point():
            raise TypeError("real square matrices expected")
        low = torch.linalg.cholesky((a + a.mT) / 2)
        ctx.save_for_backward(low)
        return low

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        (low,) = ctx.saved_tensors
        phi = (low.mT @ grad.tril()).tril()
        phi = phi - 0.5 * torch.diag_embed(phi.diagonal(dim1=-2, dim2=-1))
        s = torch.linalg.solve_triangular(low.mT, phi, upper=True)
        s = torch.linalg.solve_triangular(low, s, upper=False, left=False)
        return 0.5 * (s + s.mT)


def _inputs():
    b = torch.randn(2, 3, 3)
    return ((b @ b.mT + torch.eye(3)).requires_grad_(),)


gradsmith_inputs = {"CholeskyOfSymmetrised": _inputs}
