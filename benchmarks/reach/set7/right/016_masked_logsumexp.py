import torch
from torch.autograd import Function


class MaskedLogSumExp(Function):
    """logsumexp over the last axis where the mask is set. A row without entries yields -inf and no gradient."""

    @staticmethod
    def forward(ctx, x, mask):
        if not x.is_floating_point() or mask.dtype != torch.bool or mask.shape != x.shape:
            raise TypeError("real x and a bool mask of the same shape expected")
        ctx.save_for_backward(x, mask)
        return x.masked_fill(~mask, float("-inf")).logsumexp(-1)

    @staticmethod
    def backward(ctx, grad):
        x, mask = ctx.saved_tensors
        empty = ~mask.any(-1, keepdim=True)
        p = x.masked_fill(~mask & ~empty, float("-inf")).softmax(-1)
        return (grad.unsqueeze(-1) * p).masked_fill(~mask, 0.0), None


gradsmith_inputs = {
    "MaskedLogSumExp": lambda: (
        torch.randn(3, 4, requires_grad=True),
        torch.tensor([[1, 1, 0, 1], [1, 0, 0, 0], [1, 1, 1, 1]]).bool(),
    )
}
