import torch


class AngleBetween(torch.autograd.Function):
    """acos(c) for cosines c in [-1, 1]; the slope is that of c clamped into [-1 + eps, 1 - eps], eps by dtype."""

    @staticmethod
    def forward(ctx, c):
        if c.dtype not in (torch.float32, torch.float64):
            raise ValueError("float32 or float64")
        if (c.abs() > 1).any():
            raise ValueError("not a cosine")
        eps = 1e-12 if c.dtype == torch.float64 else 1e-6
        ctx.save_for_backward(c)
        ctx.eps = eps
        return torch.acos(c.clamp(-1 + eps, 1 - eps))

    @staticmethod
    def backward(ctx, grad):
        (c,) = ctx.saved_tensors
        safe = c.clamp(-1 + ctx.eps, 1 - ctx.eps)
        inside = c.abs() <= 1 - ctx.eps
        return -grad / torch.sqrt((1 - safe) * (1 + safe)) * inside


gradsmith_inputs = {
    "AngleBetween": lambda: (torch.tensor([-0.9, -0.2, 0.5, 0.99], dtype=torch.float64, requires_grad=True),)
}
