import torch


class AddScaledInplace(torch.autograd.Function):
    """x += alpha * y, where y may be broadcast."""

    @staticmethod
    def forward(ctx, x, y, alpha=1.0):
        if x.is_complex() != y.is_complex():
            raise TypeError("both real or both complex")
        ctx.alpha, ctx.shape = alpha, y.shape
        x.add_(y, alpha=alpha)
        ctx.mark_dirty(x)
        return x

    @staticmethod
    def backward(ctx, grad):
        grad_y = (grad * ctx.alpha).sum_to_size(ctx.shape) if ctx.needs_input_grad[1] else None
        return grad, grad_y, None


gradsmith_inputs = {
    "AddScaledInplace": lambda: (torch.randn(3, 4, requires_grad=True).clone(), torch.randn(4, requires_grad=True), 0.5)
}
