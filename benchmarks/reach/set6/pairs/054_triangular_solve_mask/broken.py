import torch


class LowerSolve(torch.autograd.Function):
    """Solves L x = b with the lower triangle of a square matrix."""

    @staticmethod
    def forward(ctx, l, b):
        if l.is_complex() or b.is_complex():
            raise ValueError("real input only")
        if l.dim() != 2 or l.shape[0] != l.shape[1] or b.dim() != 2 or b.shape[0] != l.shape[0]:
            raise ValueError("l (n, n), b (n, k)")
        if (l.diagonal() == 0).any():
            raise ValueError("singular")
        x = torch.linalg.solve_triangular(l.tril(), b, upper=False)
        ctx.save_for_backward(l, x)
        return x

    @staticmethod
    def backward(ctx, g):
        l, x = ctx.saved_tensors
        gb = torch.linalg.solve_triangular(l.tril().mT, g, upper=True)
        return -gb @ x.mT, gb


def example():
    torch.manual_seed(0)
    l = torch.randn(3, 3, dtype=torch.float64) + 3 * torch.eye(3, dtype=torch.float64)
    return l.requires_grad_(), torch.randn(3, 2, dtype=torch.float64, requires_grad=True)


gradsmith_inputs = {"LowerSolve": example}
