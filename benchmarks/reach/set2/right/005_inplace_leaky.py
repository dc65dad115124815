import torch


class LeakyReluInplace(torch.autograd.Function):
    """In-place leaky ReLU; slope > 0, so that the sign of the output tells the branch."""

    @staticmethod
    def forward(ctx, x, slope):
        assert slope > 0
        x.mul_(torch.where(x > 0, 1.0, slope).to(x.dtype))
        ctx.mark_dirty(x)
        ctx.save_for_backward(x)
        ctx.slope = slope
        return x

    @staticmethod
    def backward(ctx, grad_output):
        (y,) = ctx.saved_tensors
        return torch.where(y > 0, grad_output, ctx.slope * grad_output), None


def leaky_relu_(x, slope=0.1):
    return LeakyReluInplace.apply(x, slope)


gradsmith_inputs = {"LeakyReluInplace": lambda: (torch.randn(3, 4, dtype=torch.float64, requires_grad=True).clone(), 0.1)}
