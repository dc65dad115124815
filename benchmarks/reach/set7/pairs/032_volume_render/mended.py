import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable


class VolumeRender(Function):
    """Emission-absorption: sigma (R, S), rgb (R, S, 3), delta (R, S), background (3,) -> colour (R, 3)."""

    @staticmethod
    def forward(ctx, sigma, rgb, delta, background):
        if any(t.is_complex() for t in (sigma, rgb, delta, background)):
            raise TypeError("real tensors expected")
        if sigma.shape != delta.shape or rgb.shape != (*sigma.shape, 3) or background.shape != (3,):
            raise ValueError("shapes do not fit")
        if ctx.needs_input_grad[2]:
            raise ValueError("sample distances are constants")
        tau = (sigma * delta).cumsum(1)
        after = torch.exp(-tau)
        before = torch.exp(-(tau - sigma * delta))
        weight = before - after
        ctx.save_for_backward(rgb, delta, background, weight, after)
        return (weight[..., None] * rgb).sum(1) + after[:, -1:] * background

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        rgb, delta, background, weight, after = ctx.saved_tensors
        shade = (rgb * grad[:, None]).sum(-1)
        lit = weight * shade
        behind = lit.flip(1).cumsum(1).flip(1) - lit
        grad_sigma = delta * (after * shade - behind - after[:, -1:] * (grad @ background)[:, None])
        return grad_sigma, weight[..., None] * grad[:, None], None, (after[:, -1:] * grad).sum(0)


gradsmith_inputs = {
    "VolumeRender": lambda: (
        torch.rand(2, 4, requires_grad=True),
        torch.rand(2, 4, 3, requires_grad=True),
        torch.full((2, 4), 0.5),
        torch.zeros(3),
    )
}
