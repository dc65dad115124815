import torch


class PolicyEntropy(torch.autograd.Function):
    """Entropy of softmax(logits), (B, A) -> (B,). Invalid actions have logit -inf."""

    @staticmethod
    def forward(ctx, logits):
        logp = logits.log_softmax(-1)
        p = logp.exp()
        entropy = -torch.special.xlogy(p, p).sum(-1)
        ctx.save_for_backward(p, logp, entropy)
        return entropy

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, g):
        p, logp, entropy = ctx.saved_tensors
        # dH/dlogit = -p (log p + H)
        plogp = torch.special.xlogy(p, p)
        return -g.unsqueeze(-1) * (plogp + p * entropy.unsqueeze(-1))


gradsmith_inputs = {"PolicyEntropy": lambda: (torch.randn(4, 6, requires_grad=True),)}
