import torch


class Solve(torch.autograd.Function):
    """x with a x = b for one square matrix; b is (n, k) or (n,)."""

    @staticmethod
    def forward(ctx, a, b):
        if a.is_complex() or b.is_complex():
            raise ValueError("expected real tensors")
        if a.dim() != 2 or a.shape[0] != a.shape[1] or b.dim() not in (1, 2) or b.shape[0] != a.shape[0]:
            raise ValueError("a (n, n), b (n, k) or (n,)")
        x = torch.linalg.solve(a, b)
        ctx.save_for_backward(a, x)
        return x

    @staticmethod
    def backward(ctx, grad_x):
        a, x = ctx.saved_tensors
        grad_b = torch.linalg.solve(a.mT, grad_x)
        grad_a = -torch.outer(grad_b, x) if x.dim() == 1 else -(grad_b @ x.t())
        return grad_a, grad_b


def system():
    g = torch.Generator().manual_seed(2)
    a = torch.randn(3, 3, generator=g, dtype=torch.float64) + 3 * torch.eye(3, dtype=torch.float64)
    return a.requires_grad_(), torch.randn(3, 2, generator=g, dtype=torch.float64).requires_grad_()


gradsmith_inputs = {"Solve": system}
