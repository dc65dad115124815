import torch
from torch.autograd.function import once_differentiable


class LeastSquares(torch.autograd.Function):
    """The x that minimises |a x - b| for real a (m, n) of full column rank, m >= n, and b (m,), by QR."""

    @staticmethod
    def forward(ctx, a, b):
        if a.dim() != 2 or b.shape != a.shape[:1] or a.shape[0] < a.shape[1] or a.is_complex() or a.dtype != b.dtype:
            raise ValueError("a (m, n) with m >= n, b (m,), real, of one dtype")
        q, r = torch.linalg.qr(a)
        if not bool((r.diagonal().abs() > 1e-6).all()):
            raise ValueError("a has not full rank")
        x = torch.linalg.solve_triangular(r, (q.t() @ b)[:, None], upper=True)[:, 0]
        ctx.save_for_backward(a, b, x, r)
        return x

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        a, b, x, r = ctx.saved_tensors
        z = torch.linalg.solve_triangular(r.t(), grad[:, None], upper=False)
        z = torch.linalg.solve_triangular(r, z, upper=True)[:, 0]
        gb = a @ z
        ga = -gb[:, None] * x
        return ga, gb


gradsmith_inputs = {
    "LeastSquares": lambda: (
        (torch.randn(3, 3) + 3 * torch.eye(3)).requires_grad_(),
        torch.randn(3, requires_grad=True),
    )
}
