import torch
from torch.autograd.function import once_differentiable


class PeriodicPairEnergy(torch.autograd.Function):
    """sum over pairs of exp(-r / sigma) in a cubic periodic box, minimum image; pos (N, 3), no coincident particles."""

    @staticmethod
    def forward(ctx, pos, box, sigma):
        i, j = torch.triu_indices(pos.size(0), pos.size(0), 1)
        d = pos[i] - pos[j]
        wrapped = d - box * torch.round(d / box)
        r = wrapped.norm(dim=-1)
        e = torch.exp(-r / sigma)
        ctx.save_for_backward(i, j, wrapped, r, e)
        ctx.sigma, ctx.n = sigma, pos.size(0)
        return e.sum()

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_output):
        i, j, d, r, e = ctx.saved_tensors
        pair = (-grad_output * e / (ctx.sigma * r))[:, None] * d
        grad = pair.new_zeros(ctx.n, 3)
        grad.index_add_(0, i, pair)
        grad.index_add_(0, j, -pair)
        return grad, None, None


gradsmith_inputs = {
    "PeriodicPairEnergy": lambda: ((torch.rand(4, 3, dtype=torch.float64) * 2 + 4).requires_grad_(), 10.0, 1.5)
}
