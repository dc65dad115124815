import torch
from torch.autograd import Function


def _mask(shape, p, seed, like):
    gen = torch.Generator().manual_seed(seed)
    keep = torch.rand(shape, generator=gen, dtype=torch.float64) >= p
    return (keep.to(like.dtype) / (1 - p)).to(like.device)


class SeededDropout(Function):
    """Dropout that stores a seed instead of a mask; backward draws the same mask again."""

    @staticmethod
    def forward(ctx, x, p, training=True):
        if not 0 <= p < 1:
            raise ValueError("0 <= p < 1 is needed")
        ctx.p = p if training else 0.0
        ctx.seed = int(torch.randint(0, 2**31, ()))
        return x * _mask(x.shape, ctx.p, ctx.seed, x)

    @staticmethod
    def backward(ctx, grad):
        return grad * _mask(grad.shape, ctx.p, ctx.seed, grad), None, None


gradsmith_inputs = {"SeededDropout": lambda: (torch.randn(4, 5, requires_grad=True), 0.4, True)}
