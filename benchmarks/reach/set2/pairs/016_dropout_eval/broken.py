import torch


class SeededDropout(torch.autograd.Function):
    """Dropout whose mask is regenerated from a seed in backward instead of being stored."""

    @staticmethod
    def make_mask(shape, p, seed):
        gen = torch.Generator().manual_seed(seed)
        return torch.rand(shape, generator=gen) >= p

    @staticmethod
    def forward(ctx, x, p, seed, training):
        ctx.p, ctx.seed, ctx.training = p, seed, training
        if not training:
            return x.clone()
        return x * SeededDropout.make_mask(x.shape, p, seed) / (1 - p)

    @staticmethod
    def backward(ctx, grad_output):
        mask = SeededDropout.make_mask(grad_output.shape, ctx.p, ctx.seed) if ctx.training else 1.0
        return grad_output * mask / (1 - ctx.p), None, None, None


gradsmith_inputs = {
    "SeededDropout": lambda: (torch.randn(4, 5, dtype=torch.float64, requires_grad=True), 0.3, 11, True)
}
