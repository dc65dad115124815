import torch
from torch.autograd.function import once_differentiable


_WORKSPACE = {}


def workspace(rows, cols, dtype):
    key = (rows, cols, dtype)
    if key not in _WORKSPACE:
        _WORKSPACE[key] = torch.empty(rows, cols, dtype=dtype)
    return _WORKSPACE[key]


class FactorizedBilinear(torch.autograd.Function):
    """sum_r (x U)_r (y V)_r for x (N, d), y (N, e), U (d, r), V (e, r)."""

    @staticmethod
    def forward(ctx, x, y, U, V):
        a = x @ U
        b = y @ V
        ctx.save_for_backward(x, y, U, V, a, b)
        return (a * b).sum(-1)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_output):
        x, y, U, V, a, b = ctx.saved_tensors
        ga, gb = grad_output[:, None] * b, grad_output[:, None] * a
        return ga @ U.t(), gb @ V.t(), x.t() @ ga, y.t() @ gb


gradsmith_inputs = {
    "FactorizedBilinear": lambda: (
        torch.randn(3, 4, dtype=torch.float64, requires_grad=True),
        torch.randn(3, 5, dtype=torch.float64, requires_grad=True),
        torch.randn(4, 2, dtype=torch.float64, requires_grad=True),
        torch.randn(5, 2, dtype=torch.float64, requires_grad=True),
    )
}
