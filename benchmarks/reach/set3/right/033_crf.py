import torch
from torch.autograd.function import once_differentiable


class CrfLogPartition(torch.autograd.Function):
    """Log partition of a linear chain with real scores (T, K) and transitions (K, K), from row to column."""

    @staticmethod
    def forward(ctx, scores, transitions):
        k = scores.shape[-1]
        if scores.dim() != 2 or transitions.shape != (k, k) or scores.shape[0] == 0 or (scores[0] + transitions).is_complex():
            raise ValueError("scores (T, K), transitions (K, K)")
        alphas = [scores[0]]
        for row in scores[1:]:
            alphas.append(row + torch.logsumexp(alphas[-1][:, None] + transitions, 0))
        ctx.save_for_backward(scores, transitions, torch.stack(alphas))
        return torch.logsumexp(alphas[-1], 0)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        scores, transitions, alphas = ctx.saved_tensors
        logz = torch.logsumexp(alphas[-1], 0)
        beta = torch.zeros_like(alphas[-1])
        gs, gt = torch.empty_like(scores), torch.zeros_like(transitions)
        gs[-1] = torch.exp(alphas[-1] - logz)
        for i in reversed(range(scores.shape[0] - 1)):
            inner = transitions + scores[i + 1] + beta
            gt += torch.exp(alphas[i][:, None] + inner - logz)
            beta = torch.logsumexp(inner, 1)
            gs[i] = torch.exp(alphas[i] + beta - logz)
        return grad * gs, grad * gt


gradsmith_inputs = {
    "CrfLogPartition": lambda: (torch.randn(4, 3, requires_grad=True), torch.randn(3, 3, requires_grad=True))
}
