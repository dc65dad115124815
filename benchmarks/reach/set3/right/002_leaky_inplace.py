import torch


class LeakyReluInplace(torch.autograd.Function):
    """Leaky relu that overwrites x. The slope must be positive, so that the sign of the output tells the branch."""

    @staticmethod
    def forward(ctx, x, slope=0.1):
        if not slope > 0:
            raise ValueError("slope must be positive")
        torch.nn.functional.leaky_relu_(x, slope)
        ctx.mark_dirty(x)
        ctx.save_for_backward(x)
        ctx.slope = slope
        return x

    @staticmethod
    def backward(ctx, grad):
        (y,) = ctx.saved_tensors
        return torch.where(y > 0, grad, grad * ctx.slope), None


gradsmith_inputs = {"LeakyReluInplace": lambda: (torch.randn(3, 4, requires_grad=True).clone(), 0.2)}
