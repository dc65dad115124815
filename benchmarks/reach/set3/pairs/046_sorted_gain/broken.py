import torch


class SortedGain(torch.autograd.Function):
    """Ascending sort of x (N, C) times one gain (C,) for each rank; real."""

    @staticmethod
    def forward(ctx, x, gain):
        if x.dim() != 2 or gain.shape != x.shape[1:] or gain.is_complex():
            raise ValueError("x (N, C), gain (C,)")
        y, order = x.sort(1)
        ctx.save_for_backward(x, order, gain)
        return y * gain

    @staticmethod
    def backward(ctx, grad):
        x, order, gain = ctx.saved_tensors
        g = grad * gain
        gx = g.gather(1, order)
        return gx, (grad * x.gather(1, order)).sum(0)


gradsmith_inputs = {
    "SortedGain": lambda: (
        torch.tensor([[0.3, -1.2], [0.1, 0.8], [2.0, 0.7]], requires_grad=True),
        torch.tensor([0.5, 2.0], requires_grad=True),
    )
}
