import torch
import torch.nn.functional as F


class ConcatScale(torch.autograd.Function):
    """Concatenate any number of 1-d tensors and multiply by scale."""

    @staticmethod
    def forward(ctx, scale, *parts):
        ctx.scale = scale
        ctx.sizes = [p.numel() for p in parts]
        return torch.cat(parts) * scale

    @staticmethod
    def backward(ctx, grad_output):
        g = grad_output * ctx.scale
        return (None, *g.split(ctx.sizes))


gradsmith_inputs = {
    "ConcatScale": lambda: (0.5, *[torch.randn(4, dtype=torch.float64, requires_grad=True) for _ in range(3)])
}
