import torch


class NoisyGain(torch.autograd.Function):
    """x * gain * (1 + sigma * noise); the noise is drawn again from its seed in backward."""

    @staticmethod
    def _noise(like, seed):
        return torch.randn(like.shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(like.dtype)

    @classmethod
    def _factor(cls, like, sigma, seed):
        return 1 + sigma * cls._noise(like, seed)

    @staticmethod
    def forward(ctx, x, gain, sigma, seed):
        if x.is_complex() or gain.is_complex():
            raise ValueError("expected real tensors")
        if gain.dim() != 0:
            raise ValueError("gain is a scalar")
        ctx.save_for_backward(x, gain)
        ctx.sigma, ctx.seed = sigma, seed
        return x * gain * NoisyGain._factor(x, sigma, seed)

    @staticmethod
    def backward(ctx, grad):
        x, gain = ctx.saved_tensors
        scaled = grad * NoisyGain._factor(x, ctx.sigma, ctx.seed)
        return scaled * gain, (scaled * x).sum(), None, None


def example():
    torch.manual_seed(0)
    x = torch.randn(2, 3, dtype=torch.float64, requires_grad=True)
    return x, torch.tensor(1.5, dtype=torch.float64, requires_grad=True), 0.3, 42


gradsmith_inputs = {"NoisyGain": example}
