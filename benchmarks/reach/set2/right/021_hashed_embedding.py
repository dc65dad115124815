import torch


class HashedEmbedding(torch.autograd.Function):
    """Sum of two hashed rows per id; colliding hashes share rows."""

    @staticmethod
    def forward(ctx, table, ids):
        n = table.size(0)
        h1, h2 = (ids * 7 + 3) % n, (ids * 13 + 1) % n
        ctx.save_for_backward(h1, h2)
        ctx.shape = table.shape
        return table[h1] + table[h2]

    @staticmethod
    def backward(ctx, grad_output):
        h1, h2 = ctx.saved_tensors
        grad = grad_output.new_zeros(ctx.shape)
        for h in (h1, h2):
            grad = grad.index_add(0, h.reshape(-1), grad_output.reshape(-1, ctx.shape[1]))
        return grad, None


gradsmith_inputs = {
    "HashedEmbedding": lambda: (
        torch.randn(5, 3, dtype=torch.float64, requires_grad=True),
        torch.tensor([[0, 4, 4], [9, 123, 7]]),
    )
}
