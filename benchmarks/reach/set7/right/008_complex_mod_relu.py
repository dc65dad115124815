import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable


class ModReLU(Function):
    """relu(|z| + b) z / |z| for complex z (B, C) and a real bias (C,); z = 0 needs b < 0."""

    @staticmethod
    def forward(ctx, z, b):
        if not z.is_complex() or b.is_complex() or z.dim() < 1 or b.shape != z.shape[-1:]:
            raise TypeError("complex z and a real bias per channel expected")
        r = z.abs()
        if bool(((r == 0) & (b >= 0)).any()):
            raise ZeroDivisionError("zero has no phase")
        on = r + b > 0
        unit = z / r.masked_fill(r == 0, 1.0)
        ctx.save_for_backward(unit, r, b, on)
        return torch.where(on, (r + b) * unit, torch.zeros_like(z))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        unit, r, b, on = ctx.saved_tensors
        grad = grad * on
        radial = (grad * unit.conj()).real
        ratio = (r + b) / r.masked_fill(r == 0, 1.0)
        grad_z = ratio * (grad - radial * unit) + radial * unit
        return grad_z, radial.sum_to_size(b.shape)


gradsmith_inputs = {
    "ModReLU": lambda: (torch.randn(3, 4, dtype=torch.complex64, requires_grad=True), (-0.5 * torch.rand(4)).requires_grad_())
}
