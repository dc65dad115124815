import torch


class Expm1Over(torch.autograd.Function):
    """(exp(x) - 1) / x, by its series near 0."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        small = x.abs() < 1e-2
        safe = torch.where(small, torch.ones_like(x), x)
        return torch.where(small, 1 + x / 2 + x * x / 6 + x**3 / 24 + x**4 / 120, torch.expm1(safe) / safe)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        small = x.abs() < 1e-2
        safe = torch.where(small, torch.ones_like(x), x)
        far = (safe * safe.exp() - torch.expm1(safe)) / safe**2
        near = 0.5 + x / 6 + x * x / 8 + x**3 / 30
        return grad * torch.where(small, near, far)


gradsmith_inputs = {"Expm1Over": lambda: (torch.linspace(-2, 2, 6).requires_grad_(),)}
