import torch


class SeededDropout(torch.autograd.Function):
    """Dropout with 0 <= p < 1 that stores the seed instead of the mask."""

    @staticmethod
    def mask(x, p, seed):
        gen = torch.Generator().manual_seed(seed)
        return (torch.rand(x.shape, generator=gen) >= p).to(x.dtype) / (1 - p)

    @staticmethod
    def forward(ctx, x, p, seed):
        ctx.p, ctx.seed = p, seed
        return x * SeededDropout.mask(x, p, seed)

    @staticmethod
    def backward(ctx, g):
        return g * SeededDropout.mask(g, ctx.p, ctx.seed), None, None


gradsmith_inputs = {"SeededDropout": lambda: (torch.randn(5, 4, requires_grad=True), 0.3, 17)}
