import torch


class MaskedLogSoftmax(torch.autograd.Function):
    """Log-probabilities of the allowed actions (mask True, at least one per row); zero for the others."""

    @staticmethod
    def forward(ctx, logits, mask):
        z = logits.masked_fill(~mask, float("-inf"))
        logp = torch.log_softmax(z, dim=-1).masked_fill(~mask, 0.0)
        ctx.save_for_backward(logits, mask)
        return logp

    @staticmethod
    def backward(ctx, grad_output):
        logits, mask = ctx.saved_tensors
        probs = torch.softmax(logits.masked_fill(~mask, float("-inf")), dim=-1)
        g = grad_output * mask
        return (g - probs * g.sum(-1, keepdim=True)) * mask, None


gradsmith_inputs = {
    "MaskedLogSoftmax": lambda: (
        torch.randn(3, 4, dtype=torch.float64, requires_grad=True),
        torch.ones(3, 4, dtype=torch.bool),
    )
}
