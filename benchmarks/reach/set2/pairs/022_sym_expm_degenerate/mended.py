import torch
from torch.autograd.function import once_differentiable


class SymmetricExpm(torch.autograd.Function):
    """Matrix exponential of a symmetric matrix (only the symmetric part of A matters)."""

    @staticmethod
    def forward(ctx, A):
        w, V = torch.linalg.eigh((A + A.t()) / 2)
        ctx.save_for_backward(w, V)
        return (V * w.exp()) @ V.t()

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_output):
        w, V = ctx.saved_tensors
        dw = w[:, None] - w[None, :]
        de = w.exp()[:, None] - w.exp()[None, :]
        close = dw.abs() < 1e-8
        off = de / torch.where(close, torch.ones_like(dw), dw)
        F = torch.where(close, w.exp()[:, None].expand_as(dw), off)
        G = V @ (F * (V.t() @ grad_output @ V)) @ V.t()
        return (G + G.t()) / 2


gradsmith_inputs = {
    "SymmetricExpm": lambda: (
        torch.tensor([[1.0, 0.2, 0.1], [0.2, -0.5, 0.3], [0.1, 0.3, 0.4]], dtype=torch.float64, requires_grad=True),
    )
}
