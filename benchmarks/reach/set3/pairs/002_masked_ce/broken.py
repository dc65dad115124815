import torch
from torch.autograd.function import once_differentiable


class MaskedCrossEntropy(torch.autograd.Function):
    """Mean cross entropy of the rows whose target is not `ignore_index`."""

    @staticmethod
    def forward(ctx, logits, target, ignore_index=-100):
        if logits.dim() != 2 or target.shape != logits.shape[:1]:
            raise ValueError("logits (N, C) and target (N,)")
        keep = target != ignore_index
        safe = target.masked_fill(~keep, 0)
        logp = torch.log_softmax(logits, 1)
        picked = logp.gather(1, safe[:, None])[:, 0]
        ctx.save_for_backward(logits, safe, keep)
        count = keep.sum().clamp(min=1)
        return -(picked * keep).sum() / count

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        logits, safe, keep = ctx.saved_tensors
        delta = torch.softmax(logits, 1)
        delta.scatter_add_(1, safe[:, None], -torch.ones_like(delta[:, :1]))
        delta = delta * keep[:, None]
        return grad * delta / keep.numel(), None, None


gradsmith_inputs = {
    "MaskedCrossEntropy": lambda: (torch.randn(6, 5, requires_grad=True), torch.randint(0, 5, (6,)))
}
