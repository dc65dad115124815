import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable


def _hat(w):
    z = torch.zeros_like(w[..., 0])
    x, y, t = w.unbind(-1)
    return torch.stack([z, -t, y, t, z, -x, -y, x, z], -1).unflatten(-1, (3, 3))


def _vee(m):
    return torch.stack([m[..., 2, 1] - m[..., 1, 2], m[..., 0, 2] - m[..., 2, 0], m[..., 1, 0] - m[..., 0, 1]], -1)


class AxisAngleToMatrix(Function):
    """Rodrigues' formula; the derivative by Gallego and Yezzi (2015)."""

    @staticmethod
    def forward(ctx, w):
        if w.size(-1) != 3 or not w.is_floating_point():
            raise TypeError("real axis-angle vectors (..., 3) expected")
        theta = w.norm(dim=-1)[..., None, None]
        k = _hat(w)
        a = torch.sinc(theta / torch.pi)
        b = 0.5 * torch.sinc(theta / (2 * torch.pi)) ** 2
        turn = a * k + b * (k @ k)
        ctx.save_for_backward(w, turn)
        return torch.eye(3, dtype=w.dtype, device=w.device) + turn

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_r):
        w, turn = ctx.saved_tensors
        sq = w.square().sum(-1, keepdim=True)
        tiny = sq < 1e-12
        safe = sq.masked_fill(tiny, 1.0)
        eye = torch.eye(3, dtype=w.dtype, device=w.device)
        cols = []
        for i in range(3):
            axis = torch.linalg.cross(w, -turn[..., :, i], dim=-1)
            omega = (w[..., i, None] * w + axis) / safe
            omega = torch.where(tiny, eye[i].expand_as(omega), omega)
            cols.append((grad_r * (_hat(omega) @ (eye + turn))).sum((-1, -2)))
        return torch.stack(cols, -1)


gradsmith_inputs = {"AxisAngleToMatrix": lambda: (torch.randn(3, 3, requires_grad=True),)}
