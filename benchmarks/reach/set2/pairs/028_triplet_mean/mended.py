import torch
from torch.autograd.function import once_differentiable


class TripletMargin(torch.autograd.Function):
    """mean(relu(|a-p|^2 - |a-n|^2 + margin)) over a batch of triplets (N, D)."""

    @staticmethod
    def forward(ctx, anchor, positive, negative, margin):
        ap, an = anchor - positive, anchor - negative
        violation = ap.square().sum(-1) - an.square().sum(-1) + margin
        active = violation > 0
        ctx.save_for_backward(ap, an, active)
        return violation.clamp(min=0).mean()

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_output):
        ap, an, active = ctx.saved_tensors
        mask = active.to(ap.dtype)[:, None]
        scale = 2 * grad_output / mask.numel()
        return scale * mask * (ap - an), -scale * mask * ap, scale * mask * an, None


gradsmith_inputs = {
    "TripletMargin": lambda: tuple(torch.rand(5, 3, dtype=torch.float64, requires_grad=True) for _ in range(3)) + (10.0,)
}
