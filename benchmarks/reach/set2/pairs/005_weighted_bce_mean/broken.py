import torch


class WeightedBCEWithLogits(torch.autograd.Function):
    """Binary cross entropy of logits, averaged with optional per-sample weights. target, weight: constants."""

    @staticmethod
    def forward(ctx, logits, target, weight=None):
        if weight is None:
            weight = torch.ones_like(logits)
        loss = logits.clamp(min=0) - logits * target + torch.log1p(torch.exp(-logits.abs()))
        ctx.save_for_backward(logits, target, weight)
        return (loss * weight).sum() / weight.sum()

    @staticmethod
    def backward(ctx, grad_output):
        logits, target, weight = ctx.saved_tensors
        residual = torch.sigmoid(logits) - target
        return grad_output * weight * residual / logits.numel(), None, None


gradsmith_inputs = {
    "WeightedBCEWithLogits": lambda: (
        torch.randn(8, dtype=torch.float64, requires_grad=True),
        torch.tensor([1.0, 0, 0, 1, 1, 0, 1, 0], dtype=torch.float64),
    )
}
