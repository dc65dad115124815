import torch


class SymmetricFromVector(torch.autograd.Function):
    """The symmetric matrix (n, n) whose upper triangle, row by row, is v (n (n + 1) / 2,)."""

    @staticmethod
    def forward(ctx, v, n):
        if v.shape != (n * (n + 1) // 2,):
            raise ValueError("v must have n (n + 1) / 2 entries")
        i, j = torch.triu_indices(n, n, device=v.device)
        m = v.new_zeros(n, n)
        m[i, j] = v
        m[j, i] = v
        return m

    @staticmethod
    def backward(ctx, grad):
        n = grad.shape[0]
        i, j = torch.triu_indices(n, n, device=grad.device)
        return grad[i, j], None


gradsmith_inputs = {"SymmetricFromVector": lambda: (torch.randn(10, requires_grad=True), 4)}
