import torch
import torch.nn.functional as F


class SmoothedCrossEntropy(torch.autograd.Function):
    """Mean cross entropy with label smoothing; `target` holds class ids."""

    @staticmethod
    def forward(ctx, logits, target, smoothing=0.0):
        log_p = torch.log_softmax(logits, dim=-1)
        ctx.save_for_backward(log_p, target)
        ctx.smoothing = smoothing
        nll = -log_p.gather(-1, target.unsqueeze(-1)).squeeze(-1)
        uniform = -log_p.mean(-1)
        return ((1 - smoothing) * nll + smoothing * uniform).mean()

    @staticmethod
    def backward(ctx, grad):
        log_p, target = ctx.saved_tensors
        hard = F.one_hot(target, log_p.shape[-1]).to(log_p.dtype)
        wanted = (1 - ctx.smoothing) * hard + ctx.smoothing / log_p.shape[-1]
        return grad * (log_p.exp() - wanted) / log_p.shape[0], None, None


gradsmith_inputs = {"SmoothedCrossEntropy": lambda: (torch.randn(5, 4, requires_grad=True), torch.tensor([0, 3, 1, 2, 0]),)}
