import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable


def _cg(matvec, b):
    x, r = torch.zeros_like(b), b.clone()
    p, rs = r, (r * r).sum()
    stop = (torch.finfo(b.dtype).eps * 8) ** 2 * float(rs)
    for _ in range(20 * b.numel() + 20):
        if float(rs) <= stop:
            break
        ap = matvec(p)
        alpha = rs / (p * ap).sum()
        x, r = x + alpha * p, r - alpha * ap
        new = (r * r).sum()
        p, rs = r + new / rs * p, new
    return x


class RidgeSolve(Function):
    """Solves (A^T A + lam I) x = b without forming the matrix; the adjoint is one more solve."""

    @staticmethod
    def forward(ctx, a, b, lam):
        if a.dim() != 2 or b.shape != a.shape[1:] or a.is_complex() or b.is_complex() or lam <= 0:
            raise ValueError("a (m, n), b (n,) and a positive lam expected")
        x = _cg(lambda v: a.t() @ (a @ v) + lam * v, b)
        ctx.save_for_backward(a, x)
        ctx.lam = lam
        return x

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        a, x = ctx.saved_tensors
        y = _cg(lambda v: a.t() @ (a @ v) + ctx.lam * v, grad)
        grad_a = -(torch.outer(a @ y, x) + torch.outer(a @ x, y))
        return grad_a, y, None


gradsmith_inputs = {"RidgeSolve": lambda: (torch.randn(5, 3, requires_grad=True), torch.randn(3, requires_grad=True), 0.5)}
