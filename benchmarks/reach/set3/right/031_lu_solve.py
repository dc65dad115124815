import torch
from torch.autograd.function import once_differentiable


class LuSolve(torch.autograd.Function):
    """Solves a x = b, or a^H x = b if adjoint, for real or complex a (n, n), b (n, k), with one LU for both passes."""

    @staticmethod
    def forward(ctx, a, b, adjoint=False):
        if a.dim() != 2 or b.dim() != 2 or a.dtype != b.dtype or a.shape != (b.shape[0], b.shape[0]):
            raise ValueError("a (n, n), b (n, k) of one dtype")
        lu, pivots = torch.linalg.lu_factor(a)
        x = torch.linalg.lu_solve(lu, pivots, b, adjoint=adjoint)
        ctx.save_for_backward(lu, pivots, x)
        ctx.adjoint = adjoint
        return x

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        lu, pivots, x = ctx.saved_tensors
        gb = torch.linalg.lu_solve(lu, pivots, grad, adjoint=not ctx.adjoint)
        ga = -x @ gb.mH if ctx.adjoint else -gb @ x.mH
        return ga, gb, None


gradsmith_inputs = {
    "LuSolve": lambda: ((torch.randn(3, 3) + 3 * torch.eye(3)).requires_grad_(), torch.randn(3, 2, requires_grad=True))
}
