import torch
from torch.autograd import Function


class MemorySwish(Function):
    """x * sigmoid(b x) with a scalar or per-channel b."""

    @staticmethod
    def forward(ctx, x, b):
        if x.is_complex() or b.is_complex():
            raise TypeError("real tensors expected")
        if b.dim() > 1 or (b.dim() == 1 and b.size(0) != x.size(-1)):
            raise ValueError("b must be a scalar or one value per channel")
        ctx.save_for_backward(x, b)
        return x * torch.sigmoid(b * x)

    @staticmethod
    def backward(ctx, grad):
        x, b = ctx.saved_tensors
        gate = torch.sigmoid(b * x)
        slope = gate * (1 - gate)
        grad_x = grad * (gate + b * x * slope)
        grad_b = (grad * x * x * slope).sum_to_size(b.shape)
        return grad_x, grad_b


gradsmith_inputs = {"MemorySwish": lambda: (torch.randn(3, 4, requires_grad=True), torch.rand(4, requires_grad=True))}
