import torch


class ReplayDropout(torch.autograd.Function):
    """Dropout that stores a seed, not a mask."""

    @staticmethod
    def _keep(shape, p, seed, dtype):
        gen = torch.Generator().manual_seed(seed)
        return (torch.rand(shape, generator=gen) >= p).to(dtype) / (1 - p)

    @staticmethod
    def forward(ctx, x, p, seed):
        ctx.p, ctx.seed = p, seed
        return x * ReplayDropout._keep(x.shape, p, seed, x.dtype)

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * ReplayDropout._keep(grad_output.shape, ctx.p, ctx.seed, grad_output.dtype), None, None


gradsmith_inputs = {"ReplayDropout": lambda: (torch.randn(4, 5, dtype=torch.float64, requires_grad=True), 0.4, 1234)}
