import torch


class PairDistance(torch.autograd.Function):
    """Distances between all rows of a and of b; the slope at distance 0 is 0."""

    @staticmethod
    def forward(ctx, a, b):
        d = a.unsqueeze(1) - b.unsqueeze(0)
        dist = d.square().sum(-1).sqrt()
        ctx.save_for_backward(d, dist)
        return dist

    @staticmethod
    def backward(ctx, grad):
        d, dist = ctx.saved_tensors
        g = torch.where(dist > 0, grad / dist, torch.zeros_like(dist)).unsqueeze(-1) * d
        return g.sum(1), -g.sum(0)


gradsmith_inputs = {"PairDistance": lambda: (torch.randn(3, 4, requires_grad=True), torch.randn(5, 4, requires_grad=True),)}
