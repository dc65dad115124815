import torch
from torch.autograd import Function


class TopKGate(Function):
    """The k largest logits per row, their positions, and a load per expert (no gradient)."""

    @staticmethod
    def forward(ctx, logits, k):
        if logits.dim() != 2 or not logits.is_floating_point():
            raise TypeError("real (N, E) logits expected")
        values, where = logits.topk(k, dim=1)
        load = torch.zeros_like(logits[0]).scatter_add_(0, where.flatten(), torch.ones_like(values).flatten())
        ctx.mark_non_differentiable(where, load)
        ctx.experts = logits.size(1)
        ctx.save_for_backward(where)
        return values, where, load

    @staticmethod
    def backward(ctx, grad, *unused):
        (where,) = ctx.saved_tensors
        return torch.zeros(grad.size(0), ctx.experts, dtype=grad.dtype, device=grad.device).scatter(1, where, grad), None


gradsmith_inputs = {"TopKGate": lambda: (torch.randn(4, 6, requires_grad=True), 2)}
