import torch
from torch.autograd.function import once_differentiable


class ModReLU(torch.autograd.Function):
    """relu(|z| + bias) * z / |z| for complex z (..., C) and real bias (C,); 0 at z = 0."""

    @staticmethod
    def forward(ctx, z, bias):
        if not z.is_complex() or bias.is_complex() or bias.shape != z.shape[-1:]:
            raise ValueError("z complex (..., C), bias real (C,)")
        ctx.save_for_backward(z, bias)
        r = z.abs()
        safe = torch.where(r > 0, r, torch.ones_like(r))
        return torch.relu(r + bias) * z / safe

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        z, bias = ctx.saved_tensors
        r = z.abs()
        safe = torch.where(r > 0, r, torch.ones_like(r))
        unit = z / safe
        on = torch.where(r > 0, r + bias > 0, bias >= 0).to(r.dtype)
        along = (grad * unit.conj()).real
        scale = torch.where(r > 0, torch.relu(r + bias) / safe, on)
        gz = scale * grad + (on - scale) * along * unit
        return gz, (on * along).sum_to_size(bias.shape)


gradsmith_inputs = {
    "ModReLU": lambda: (torch.randn(4, 3, dtype=torch.complex64, requires_grad=True), torch.zeros(3, requires_grad=True))
}
