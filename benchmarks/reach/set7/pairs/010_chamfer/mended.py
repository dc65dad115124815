import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable


class ChamferDistance(Function):
    """mean_i min_j |p_i - q_j|^2 + mean_j min_i |p_i - q_j|^2 for clouds (B, N, D) and (B, M, D)."""

    @staticmethod
    def forward(ctx, p, q):
        if p.dim() != 3 or q.dim() != 3 or p.is_complex() or q.is_complex():
            raise TypeError("two real (B, N, D) clouds expected")
        if p.size(0) != q.size(0) or p.size(2) != q.size(2):
            raise ValueError("batch size or dimension differ")
        d = (p[:, :, None] - q[:, None]).square().sum(-1)
        d1, i1 = d.min(2)
        d2, i2 = d.min(1)
        ctx.save_for_backward(p, q, i1, i2)
        return d1.mean(1) + d2.mean(1)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_dist):
        p, q, i1, i2 = ctx.saved_tensors
        n, m, dim = p.size(1), q.size(1), p.size(2)
        i1, i2 = i1[..., None].expand(-1, -1, dim), i2[..., None].expand(-1, -1, dim)
        g = grad_dist[:, None, None]
        from_p = 2 * g * (p - q.gather(1, i1)) / n
        from_q = 2 * g * (q - p.gather(1, i2)) / m
        grad_p = from_p.scatter_add(1, i2, -from_q)
        grad_q = from_q.scatter_add(1, i1, -from_p)
        return grad_p, grad_q


gradsmith_inputs = {
    "ChamferDistance": lambda: (torch.randn(2, 5, 3, requires_grad=True), torch.randn(2, 5, 3, requires_grad=True))
}
