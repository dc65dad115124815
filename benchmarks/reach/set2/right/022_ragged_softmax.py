import torch


class RaggedSoftmax(torch.autograd.Function):
    """Softmax within consecutive segments of a flat tensor; offsets (S + 1,) start at 0, end at numel, never descend."""

    @staticmethod
    def forward(ctx, x, offsets):
        assert int(offsets[0]) == 0 and int(offsets[-1]) == x.numel() and bool((offsets.diff() >= 0).all())
        y = torch.empty_like(x)
        bounds = offsets.tolist()
        for lo, hi in zip(bounds, bounds[1:]):
            y[lo:hi] = torch.softmax(x[lo:hi], 0)
        ctx.save_for_backward(y)
        ctx.bounds = bounds
        return y

    @staticmethod
    def backward(ctx, grad_output):
        (y,) = ctx.saved_tensors
        parts = []
        for lo, hi in zip(ctx.bounds, ctx.bounds[1:]):
            p, g = y[lo:hi], grad_output[lo:hi]
            parts.append(p * (g - (p * g).sum()))
        return torch.cat(parts), None


gradsmith_inputs = {
    "RaggedSoftmax": lambda: (torch.randn(7, dtype=torch.float64, requires_grad=True), torch.tensor([0, 3, 3, 4, 7]))
}
