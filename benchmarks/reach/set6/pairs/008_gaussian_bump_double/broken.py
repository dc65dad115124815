import torch


class GaussianBump(torch.autograd.Function):
    """exp(-x^2)."""

    @staticmethod
    def forward(ctx, x):
        if x.is_complex():
            raise ValueError("expected real tensors")
        y = torch.exp(-x * x)
        ctx.save_for_backward(-2 * x * y)
        return y

    @staticmethod
    def backward(ctx, grad_output):
        (slope,) = ctx.saved_tensors
        return grad_output * slope


gradsmith_inputs = {"GaussianBump": lambda: (torch.linspace(-2, 2, 7, dtype=torch.float64, requires_grad=True),)}
