import torch


class GaussianGrad(torch.autograd.Function):
    """grad * d/dx exp(-x^2 / 2), differentiable once more."""

    @staticmethod
    def forward(ctx, grad, x):
        ctx.save_for_backward(grad, x)
        return -grad * x * torch.exp(-0.5 * x * x)

    @staticmethod
    def backward(ctx, gg):
        grad, x = ctx.saved_tensors
        e = torch.exp(-0.5 * x * x)
        return -gg * x * e, gg * grad * (x * x - 1) * e


class Gaussian(torch.autograd.Function):
    """exp(-x^2 / 2)."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.exp(-0.5 * x * x)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return GaussianGrad.apply(grad_output, x)


gradsmith_inputs = {
    "Gaussian": lambda: (torch.randn(5, dtype=torch.float64, requires_grad=True),),
    "GaussianGrad": lambda: (
        torch.randn(5, dtype=torch.float64, requires_grad=True),
        torch.randn(5, dtype=torch.float64, requires_grad=True),
    ),
}
