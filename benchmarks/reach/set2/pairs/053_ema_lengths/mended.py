import torch


class PaddedEMA(torch.autograd.Function):
    """Final state of s <- decay * s + (1 - decay) * x_t over x (B, T, D); row b stops after lengths[b] steps."""

    @staticmethod
    def forward(ctx, x, decay, lengths):
        s = torch.zeros_like(x[:, 0])
        for t in range(x.size(1)):
            live = (t < lengths)[:, None]
            s = torch.where(live, decay * s + (1 - decay) * x[:, t], s)
        ctx.decay, ctx.steps = decay, x.size(1)
        ctx.save_for_backward(lengths)
        return s

    @staticmethod
    def backward(ctx, grad_output):
        (lengths,) = ctx.saved_tensors
        g, grads = grad_output, []
        for t in reversed(range(ctx.steps)):
            live = (t < lengths)[:, None]
            grads.append(torch.where(live, (1 - ctx.decay) * g, torch.zeros_like(g)))
            g = torch.where(live, ctx.decay * g, g)
        return torch.stack(grads[::-1], dim=1), None, None


gradsmith_inputs = {
    "PaddedEMA": lambda: (
        torch.randn(2, 4, 3, dtype=torch.float64, requires_grad=True),
        0.8,
        torch.tensor([4, 4]),
    )
}
