import torch
from torch.autograd import Function


class Sparsemax(Function):
    """Projection on the simplex along the last axis (Martins and Astudillo, 2016)."""

    @staticmethod
    def forward(ctx, z):
        if not z.is_floating_point():
            raise TypeError("z must be real")
        zs = z.sort(dim=-1, descending=True).values
        k = torch.arange(1, z.size(-1) + 1, device=z.device, dtype=z.dtype)
        css = zs.cumsum(-1) - 1
        support = (k * zs > css).sum(-1, keepdim=True)
        tau = css.gather(-1, support - 1) / support.to(z.dtype)
        p = (z - tau).clamp(min=0)
        ctx.save_for_backward(p)
        return p

    @staticmethod
    def backward(ctx, grad_output):
        (p,) = ctx.saved_tensors
        on = (p > 0).to(grad_output.dtype)
        v = (grad_output * on).sum(-1, keepdim=True) / on.sum(-1, keepdim=True)
        return on * (grad_output - v)


gradsmith_inputs = {"Sparsemax": lambda: (torch.randn(1, 7, requires_grad=True),)}
