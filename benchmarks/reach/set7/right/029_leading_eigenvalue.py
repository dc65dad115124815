import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable


class LeadingEigenvalue(Function):
    """Largest eigenvalue of the symmetric part of a matrix by orthogonal iteration; its gradient is v v^T."""

    @staticmethod
    def forward(ctx, a, tol=1e-13):
        if a.dim() != 2 or a.size(0) != a.size(1) or a.dtype not in (torch.float32, torch.float64):
            raise TypeError("a square matrix of single or double precision expected")
        s = ((a + a.t()) / 2).double()
        shifted = s + s.abs().sum(1).max() * torch.eye(len(s), dtype=s.dtype, device=s.device)
        q = torch.eye(len(s), dtype=s.dtype, device=s.device)
        m = shifted / shifted.norm()
        for _ in range(60):
            m = m @ m
            m = m / m.norm()
        v = m[:, m.norm(dim=0).argmax()]
        v = v / v.norm()
        value = v @ s @ v
        if not float((s @ v - value * v).norm()) <= 1e-6 * float(s.norm() + tol):
            raise RuntimeError("two largest eigenvalues are too close")
        ctx.save_for_backward(v)
        return value.to(a.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        (v,) = ctx.saved_tensors
        return (grad * torch.outer(v, v)).to(grad.dtype), None


gradsmith_inputs = {"LeadingEigenvalue": lambda: (torch.randn(4, 4, requires_grad=True), 1e-13)}
