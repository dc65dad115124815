import torch


class UnitPhase(torch.autograd.Function):
    """z / |z| for complex z other than 0."""

    @staticmethod
    def forward(ctx, z):
        if not z.is_complex() or bool((z == 0).any()):
            raise ValueError("complex and not 0")
        ctx.save_for_backward(z)
        return z / z.abs()

    @staticmethod
    def backward(ctx, grad):
        (z,) = ctx.saved_tensors
        r = z.abs()
        u = z / r
        return 1j * u * (grad * u.conj()).imag / r


gradsmith_inputs = {"UnitPhase": lambda: (torch.randn(4, dtype=torch.complex64, requires_grad=True),)}
