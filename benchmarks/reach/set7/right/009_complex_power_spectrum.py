import torch
from torch.autograd import Function


class LogPower(Function):
    """log(|z|^2 + eps): real output of a complex (or real) input."""

    @staticmethod
    def forward(ctx, z, eps):
        if eps <= 0:
            raise ValueError("eps must be positive")
        ctx.save_for_backward(z)
        ctx.eps = eps
        return torch.log((z * z.conj()).real + eps)

    @staticmethod
    def backward(ctx, grad):
        (z,) = ctx.saved_tensors
        return 2 * grad * z / ((z * z.conj()).real + ctx.eps), None


gradsmith_inputs = {"LogPower": lambda: (torch.randn(3, 4, dtype=torch.complex64, requires_grad=True), 1e-2)}
