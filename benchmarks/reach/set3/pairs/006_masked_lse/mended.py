import torch
from torch.autograd.function import once_differentiable


class MaskedLogSumExp(torch.autograd.Function):
    """logsumexp over the last dim of the entries where `mask` is True; 0 for rows without any."""

    @staticmethod
    def forward(ctx, x, mask):
        if mask.dtype != torch.bool or mask.shape != x.shape or x.is_complex():
            raise ValueError("x must be real, mask bool, of the shape of x")
        ctx.save_for_backward(x, mask)
        out = torch.logsumexp(x.masked_fill(~mask, float("-inf")), -1)
        return torch.where(mask.any(-1), out, torch.zeros_like(out))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        x, mask = ctx.saved_tensors
        p = torch.softmax(x.masked_fill(~mask, float("-inf")), -1)
        return grad.unsqueeze(-1) * p.masked_fill(~mask, 0.0), None


gradsmith_inputs = {
    "MaskedLogSumExp": lambda: (
        torch.randn(3, 5, requires_grad=True),
        torch.tensor([[True, True, False, True, False], [True] * 5, [False, False, True, False, True]]),
    )
}
