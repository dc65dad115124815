import torch


class Covariance(torch.autograd.Function):
    """Unbiased covariance (D, D) of the rows of real x (N, D), N >= 2."""

    @staticmethod
    def forward(ctx, x):
        if x.dim() != 2 or x.shape[0] < 2 or x.is_complex():
            raise ValueError("real x (N, D), N >= 2")
        ctx.save_for_backward(x)
        d = x - x.mean(0)
        return d.t() @ d / (x.shape[0] - 1)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        d = x - x.mean(0)
        return d @ (grad + grad.t()) / (x.shape[0] - 1)


gradsmith_inputs = {"Covariance": lambda: (torch.randn(6, 3, requires_grad=True),)}
