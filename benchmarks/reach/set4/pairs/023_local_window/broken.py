import torch


class LocalScores(torch.autograd.Function):
    """Attention weights over keys at most `window` steps away."""

    @staticmethod
    def forward(ctx, q, k, window=64):
        i = torch.arange(q.shape[0])
        far = (i[:, None] - i[None, :]).abs() > window
        p = (q @ k.T).masked_fill(far, float("-inf")).softmax(-1)
        ctx.save_for_backward(q, k, p)
        ctx.window = window
        return p

    @staticmethod
    def backward(ctx, grad):
        q, k, p = ctx.saved_tensors
        i = torch.arange(q.shape[0])
        near = (i[:, None] - i[None, :]).abs() < ctx.window
        g = p * (grad - (grad * p).sum(-1, keepdim=True)) * near
        return g @ k, g.T @ q, None


gradsmith_inputs = {"LocalScores": lambda: (torch.randn(5, 3, requires_grad=True), torch.randn(5, 3, requires_grad=True),)}
