import torch
from torch.autograd.function import once_differentiable


class FusedCrossEntropy(torch.autograd.Function):
    """Mean cross entropy over the rows whose target is not ignore_index."""

    @staticmethod
    def forward(ctx, logits, target, ignore_index=-100):
        valid = target != ignore_index
        safe = target.clamp(min=0)
        logp = torch.log_softmax(logits, dim=-1)
        picked = logp.gather(1, safe[:, None]).squeeze(1)
        count = valid.sum().clamp(min=1)
        ctx.save_for_backward(logp, safe, valid, count)
        return -(picked * valid).sum() / count

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_output):
        logp, safe, valid, count = ctx.saved_tensors
        grad = logp.exp()
        grad[torch.arange(len(safe)), safe] -= 1.0
        return grad * (grad_output / count), None, None


gradsmith_inputs = {
    "FusedCrossEntropy": lambda: (
        torch.randn(6, 4, dtype=torch.float64, requires_grad=True),
        torch.tensor([0, 3, 1, 1, 2, 0]),
    )
}
