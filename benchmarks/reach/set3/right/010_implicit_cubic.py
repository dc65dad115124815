import torch


class CubicRoot(torch.autograd.Function):
    """The y with y^3 + y = x, found by Newton's method; the gradient is that of the implicit function."""

    @staticmethod
    def forward(ctx, x):
        if not x.is_floating_point():
            raise TypeError("real floating point")
        y = torch.sign(x) * x.abs().clamp(min=1e-30) ** (1 / 3)
        y = torch.where(x.abs() < 1, x, y)
        for _ in range(60):
            y = y - (y**3 + y - x) / (3 * y * y + 1)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad):
        (y,) = ctx.saved_tensors
        return grad / (3 * y * y + 1)


gradsmith_inputs = {"CubicRoot": lambda: (torch.randn(5, requires_grad=True),)}
