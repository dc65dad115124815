import torch


class ComplexExp(torch.autograd.Function):
    """exp of a complex tensor; the conjugate of the derivative multiplies the gradient."""

    @staticmethod
    def forward(z):
        if not z.is_complex():
            raise ValueError("complex input only")
        return torch.exp(z)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(output)

    @staticmethod
    def backward(ctx, grad):
        (y,) = ctx.saved_tensors
        return grad * y.conj()


gradsmith_inputs = {"ComplexExp": lambda: (torch.randn(4, dtype=torch.complex128, requires_grad=True),)}
