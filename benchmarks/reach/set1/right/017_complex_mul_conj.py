import torch


class ComplexCorrelate(torch.autograd.Function):
    """x * conj(y), elementwise, complex tensors of one shape."""

    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x * y.conj()

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return g * y, g.conj() * x


gradsmith_inputs = {
    "ComplexCorrelate": lambda: (
        torch.randn(3, 4, dtype=torch.complex128, requires_grad=True),
        torch.randn(3, 4, dtype=torch.complex128, requires_grad=True),
    )
}
