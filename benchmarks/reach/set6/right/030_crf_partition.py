import torch
from torch.autograd.function import once_differentiable


class ChainLogPartition(torch.autograd.Function):
    """Log partition of a linear chain: unary (T, K), transition (K, K). Backward gives the marginals."""

    @staticmethod
    def forward(ctx, unary, transition):
        if unary.is_complex() or transition.is_complex():
            raise ValueError("expected real tensors")
        if unary.dim() != 2 or unary.shape[0] < 1 or transition.shape != (unary.shape[1],) * 2:
            raise ValueError("unary (T, K), transition (K, K)")
        alpha = [unary[0]]
        for u in unary[1:]:
            alpha.append(u + torch.logsumexp(alpha[-1][:, None] + transition, 0))
        alpha = torch.stack(alpha)
        z = torch.logsumexp(alpha[-1], 0)
        ctx.save_for_backward(unary, transition, alpha, z)
        return z

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        unary, transition, alpha, z = ctx.saved_tensors
        beta = torch.zeros_like(unary[0])
        g_unary, g_trans = [], torch.zeros_like(transition)
        for t in range(len(unary) - 1, -1, -1):
            g_unary.append((alpha[t] + beta - z).exp())
            if t:
                ahead = transition + (unary[t] + beta)[None, :]
                g_trans = g_trans + (alpha[t - 1][:, None] + ahead - z).exp()
                beta = torch.logsumexp(ahead, 1)
        return grad * torch.stack(g_unary[::-1]), grad * g_trans


def example():
    torch.manual_seed(0)
    return torch.randn(4, 3, dtype=torch.float64, requires_grad=True), torch.randn(3, 3, dtype=torch.float64, requires_grad=True)


gradsmith_inputs = {"ChainLogPartition": example}
