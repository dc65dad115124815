"""Front-to-back compositing of samples along a ray."""
import torch


class Composite(torch.autograd.Function):
    """rgb (R, S, 3), alpha (R, S) in [0, 1] -> colour (R, 3)."""

    @staticmethod
    def forward(ctx, rgb, alpha):
        keep = 1 - alpha
        T = torch.cat([torch.ones_like(keep[:, :1]), keep.cumprod(1)[:, :-1]], 1)
        w = T * alpha
        ctx.save_for_backward(rgb, alpha, T, w)
        return (w.unsqueeze(-1) * rgb).sum(1)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, g):
        rgb, alpha, T, w = ctx.saved_tensors
        grad_rgb = w.unsqueeze(-1) * g.unsqueeze(1)
        shade = (rgb * g.unsqueeze(1)).sum(-1)
        contrib = shade * w
        behind = contrib.flip(1).cumsum(1).flip(1) - contrib
        grad_alpha = T * shade - behind / (1 - alpha)
        return grad_rgb, grad_alpha


def _rays(rays=4, samples=6):
    rgb = torch.rand(rays, samples, 3, requires_grad=True)
    sigma = torch.rand(rays, samples)
    return rgb, (1 - torch.exp(-sigma)).requires_grad_()


gradsmith_inputs = {"Composite": _rays}
