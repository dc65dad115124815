import torch


class ClampBetween(torch.autograd.Function):
    """x limited to [low, high], tensors that are broadcast to x; low must be below high. All three have gradients."""

    @staticmethod
    def forward(ctx, x, low, high):
        if torch.broadcast_shapes(x.shape, low.shape, high.shape) != x.shape or not bool((low < high).all()):
            raise ValueError("low below high, broadcast to x")
        ctx.save_for_backward(x, low, high)
        return torch.where(x < low, low, torch.where(x > high, high, x))

    @staticmethod
    def backward(ctx, grad):
        x, low, high = ctx.saved_tensors
        under, over = x < low, x > high
        zero = torch.zeros_like(grad)
        return (
            torch.where(under | over, zero, grad),
            torch.where(under, grad, zero).sum_to_size(low.shape),
            torch.where(over, grad, zero).sum_to_size(high.shape),
        )


gradsmith_inputs = {
    "ClampBetween": lambda: (
        torch.randn(3, 4, requires_grad=True),
        torch.tensor([-0.5], requires_grad=True),
        torch.tensor([0.5], requires_grad=True),
    )
}
