import torch
from torch.autograd.function import once_differentiable


class Kepler(torch.autograd.Function):
    """Eccentric anomaly E with E - e sin E = mean, for real mean and 0 <= e < 0.95 of one shape."""

    @staticmethod
    def forward(ctx, mean, e):
        if mean.shape != e.shape or not bool(((e >= 0) & (e < 0.95)).all()):
            raise ValueError("0 <= e < 0.95, of the shape of mean")
        lo, hi = mean - 1, mean + 1
        for _ in range(70):
            mid = (lo + hi) / 2
            above = mid - e * torch.sin(mid) > mean
            lo, hi = torch.where(above, lo, mid), torch.where(above, mid, hi)
        out = (lo + hi) / 2
        ctx.save_for_backward(out, e)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        out, e = ctx.saved_tensors
        g = grad / (1 - e * torch.cos(out))
        return g, g * torch.sin(out)


gradsmith_inputs = {
    "Kepler": lambda: ((torch.rand(5) * 6).requires_grad_(), (torch.rand(5) * 0.8 + 0.05).requires_grad_())
}
