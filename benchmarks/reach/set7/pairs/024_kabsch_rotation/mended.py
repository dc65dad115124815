import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable


class ProcrustesRotation(Function):
    """The rotation R in SO(3) that maximises tr(R^T M)."""

    @staticmethod
    def forward(ctx, m):
        if m.shape[-2:] != (3, 3) or not m.is_floating_point():
            raise TypeError("real 3 x 3 matrices expected")
        u, s, vh = torch.linalg.svd(m)
        sign = torch.ones_like(s)
        sign[..., -1] = torch.where(torch.linalg.det(u @ vh) < 0, -1.0, 1.0).to(s.dtype)
        if bool((s[..., 1] + sign[..., 2] * s[..., 2] <= 1e-5 * s[..., 0]).any()):
            raise ValueError("the rotation is not unique")
        ctx.save_for_backward(u, s, sign, vh)
        return (u * sign[..., None, :]) @ vh

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_r):
        u, s, sign, vh = ctx.saved_tensors
        us = u * sign[..., None, :]
        inner = us.mT @ grad_r @ vh.mT
        skew = inner - inner.mT
        d = s * sign
        total = d[..., :, None] + d[..., None, :]
        total = total + torch.eye(3, dtype=s.dtype, device=s.device)
        off = skew / total * (1 - torch.eye(3, dtype=s.dtype, device=s.device))
        return us @ off @ vh


def _inputs():
    return ((torch.eye(3) * torch.tensor([3.0, 2.0, 1.0]) + 0.2 * torch.randn(2, 3, 3)).requires_grad_(),)


gradsmith_inputs = {"ProcrustesRotation": _inputs}
