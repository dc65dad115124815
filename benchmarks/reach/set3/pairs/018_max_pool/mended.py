import torch


class MaxPool(torch.autograd.Function):
    """Maximum over windows of `size` along the last dim of real x (N, L), with any stride."""

    @staticmethod
    def forward(ctx, x, size, stride):
        if x.dim() != 2 or stride < 1 or size < 1:
            raise ValueError("x (N, L), size and stride positive")
        y, place = x.unfold(1, size, stride).max(-1)
        place = place + stride * torch.arange(y.shape[1], device=x.device)
        ctx.save_for_backward(place)
        ctx.length = x.shape[1]
        return y

    @staticmethod
    def backward(ctx, grad):
        (place,) = ctx.saved_tensors
        gx = grad.new_zeros(grad.shape[0], ctx.length)
        return gx.scatter_add(1, place, grad), None, None


gradsmith_inputs = {"MaxPool": lambda: (torch.randn(3, 9, requires_grad=True), 3, 3)}
