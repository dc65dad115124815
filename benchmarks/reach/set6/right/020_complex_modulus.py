import torch


class Modulus(torch.autograd.Function):
    """|z|, complex in, real out; the gradient at 0 is 0, as in torch.abs."""

    @staticmethod
    def forward(ctx, z):
        if not z.is_complex():
            raise ValueError("complex input only")
        ctx.save_for_backward(z)
        return z.abs()

    @staticmethod
    def backward(ctx, g):
        (z,) = ctx.saved_tensors
        return g * torch.sgn(z)


gradsmith_inputs = {"Modulus": lambda: (torch.randn(5, dtype=torch.complex128, requires_grad=True),)}
