import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable


class SPDLog(Function):
    """Matrix logarithm of the symmetric part of positive definite matrices, by eigh and the Daleckii-Krein formula."""

    @staticmethod
    def forward(ctx, a):
        if a.is_complex() or a.dim() < 2 or a.size(-1) != a.size(-2):
            raise TypeError("real square matrices expected")
        lam, q = torch.linalg.eigh((a + a.mT) / 2)
        if bool((lam <= 0).any()):
            raise ValueError("not positive definite")
        ctx.save_for_backward(lam, q)
        return (q * lam.log()[..., None, :]) @ q.mT

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_out):
        lam, q = ctx.saved_tensors
        li, lj = lam[..., :, None], lam[..., None, :]
        ratio = (li - lj) / (li + lj)
        close = ratio.abs() < 1e-6
        diff = 2 * torch.atanh(ratio) / (ratio.masked_fill(close, 1.0) * (li + lj))
        diff = diff.masked_fill(close, 0.0) + torch.diag_embed(1 / lam)
        sym = (grad_out + grad_out.mT) / 2
        inner = q.mT @ sym @ q
        return q @ (inner * diff) @ q.mT


def _inputs():
    b = torch.randn(3, 3)
    return ((b @ b.t() + torch.diag(torch.tensor([0.5, 1.0, 2.0]))).requires_grad_(),)


gradsmith_inputs = {"SPDLog": _inputs}
