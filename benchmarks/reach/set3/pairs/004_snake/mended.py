import torch


class Snake(torch.autograd.Function):
    """x + sin^2(alpha x) / alpha with one positive alpha for each channel (dim 1) of real x."""

    @staticmethod
    def forward(ctx, x, alpha):
        if x.is_complex() or x.dim() < 2 or alpha.shape != (x.shape[1],) or not bool((alpha > 0).all()):
            raise ValueError("x (N, C, ...) and alpha (C,), positive")
        ctx.save_for_backward(x, alpha)
        a = alpha.view(1, -1, *[1] * (x.dim() - 2))
        return x + torch.sin(a * x) ** 2 / a

    @staticmethod
    def backward(ctx, grad):
        x, alpha = ctx.saved_tensors
        a = alpha.view(1, -1, *[1] * (x.dim() - 2))
        grad_x = grad * (1 + torch.sin(2 * a * x))
        ga = grad * (x * torch.sin(2 * a * x) / a - torch.sin(a * x) ** 2 / a**2)
        return grad_x, ga.transpose(1, -1).flatten(0, -2).sum(0)


gradsmith_inputs = {"Snake": lambda: (torch.randn(5, 3, requires_grad=True), (torch.rand(3) + 0.5).requires_grad_())}
