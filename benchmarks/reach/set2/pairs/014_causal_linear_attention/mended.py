import torch


class CausalScores(torch.autograd.Function):
    """Masked scores q k^T, zero where a key lies in the future; queries are the last Tq of Tk >= Tq positions."""

    @staticmethod
    def forward(ctx, q, k):
        assert k.size(-2) >= q.size(-2)
        ctx.save_for_backward(q, k)
        scores = q @ k.transpose(-1, -2)
        return scores.tril(k.size(-2) - q.size(-2))

    @staticmethod
    def backward(ctx, grad_output):
        q, k = ctx.saved_tensors
        g = grad_output.tril(k.size(-2) - q.size(-2))
        return g @ k, g.transpose(-1, -2) @ q


gradsmith_inputs = {
    "CausalScores": lambda: (
        torch.randn(2, 5, 4, dtype=torch.float64, requires_grad=True),
        torch.randn(2, 5, 4, dtype=torch.float64, requires_grad=True),
    )
}
