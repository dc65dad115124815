import torch


class SeededDropout(torch.autograd.Function):
    """Dropout that stores the seed instead of the mask."""

    @staticmethod
    def _keep(like, p, seed):
        generator = torch.Generator().manual_seed(seed)
        return torch.rand(like.shape, generator=generator) >= p

    @staticmethod
    def forward(ctx, x, p, seed):
        if not 0 <= p < 1:
            raise ValueError("p must be in [0, 1)")
        ctx.p, ctx.seed = p, seed
        return x * SeededDropout._keep(x, p, seed) / (1 - p)

    @staticmethod
    def backward(ctx, grad):
        keep = SeededDropout._keep(grad, ctx.p, ctx.seed)
        return grad * keep / (1 - ctx.p), None, None


def example():
    torch.manual_seed(0)
    return torch.randn(4, 5, dtype=torch.float64, requires_grad=True), 0.0, 1234


gradsmith_inputs = {"SeededDropout": example}
