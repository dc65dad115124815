import torch


class PeriodicPairEnergy(torch.autograd.Function):
    """Sum over pairs of exp(-|r|^2 / 2) with r the nearest image in a cubic box of side `box`."""

    @staticmethod
    def _difference(x, box):
        d = x[:, None, :] - x[None, :, :]
        return d - box * torch.round(d / box).detach()

    @staticmethod
    def forward(ctx, x, box):
        if x.dim() != 2 or box <= 0:
            raise ValueError("x must be (particles, dimensions), box positive")
        ctx.save_for_backward(x)
        ctx.box = box
        d = PeriodicPairEnergy._difference(x, box)
        e = torch.exp(-0.5 * d.square().sum(-1))
        return 0.5 * (e.sum() - e.diagonal().sum())

    @staticmethod
    def backward(ctx, grad_energy):
        (x,) = ctx.saved_tensors
        d = PeriodicPairEnergy._difference(x, ctx.box)
        e = torch.exp(-0.5 * d.square().sum(-1))
        return -grad_energy * (e[..., None] * d).sum(1), None


def cluster():
    torch.manual_seed(0)
    return torch.rand(4, 3, dtype=torch.float64).requires_grad_(), 10.0


gradsmith_inputs = {"PeriodicPairEnergy": cluster}
