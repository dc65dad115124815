import torch


class HMMLogZ(torch.autograd.Function):
    """log partition of a chain: unary (T, S), transition (S, S)."""

    @staticmethod
    def forward(ctx, unary, trans):
        alpha = [unary[0]]
        for t in range(1, unary.shape[0]):
            alpha.append(unary[t] + torch.logsumexp(alpha[-1][:, None] + trans, 0))
        alpha = torch.stack(alpha)
        logz = torch.logsumexp(alpha[-1], 0)
        ctx.save_for_backward(unary, trans, alpha, logz)
        return logz

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, g):
        unary, trans, alpha, logz = ctx.saved_tensors
        T = unary.shape[0]
        beta = torch.zeros_like(unary[0])
        node = torch.empty_like(unary)
        node[T - 1] = (alpha[T - 1] + beta - logz).exp()
        edge = torch.zeros_like(trans)
        for t in range(T - 2, -1, -1):
            after = unary[t + 1] + beta
            edge += (alpha[t][:, None] + trans + after[None, :] - logz).exp()
            beta = torch.logsumexp(trans + after[None, :], 1)
            node[t] = (alpha[t] + beta - logz).exp()
        return g * node, g * edge


gradsmith_inputs = {
    "HMMLogZ": lambda: (torch.randn(5, 3, requires_grad=True), torch.randn(3, 3, requires_grad=True))
}
