import torch


class ReversibleCoupling(torch.autograd.Function):
    """y1 = x1 + tanh(x2 A), y2 = x2 + tanh(y1 B); the inputs are recomputed from the outputs."""

    @staticmethod
    def forward(ctx, x1, x2, a, b):
        y1 = x1 + torch.tanh(x2 @ a)
        y2 = x2 + torch.tanh(y1 @ b)
        ctx.save_for_backward(y1, y2, a, b)
        return y1, y2

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, g1, g2):
        y1, y2, a, b = ctx.saved_tensors
        tb = torch.tanh(y1 @ b)
        x2 = y2 - tb
        ta = torch.tanh(x2 @ a)
        d2 = g2 * (1 - tb * tb)
        gy1 = g1 + d2 @ b.t()
        gb = y1.t() @ d2
        d1 = gy1 * (1 - ta * ta)
        return gy1, g2 + d1 @ a.t(), x2.t() @ d1, gb


gradsmith_inputs = {
    "ReversibleCoupling": lambda: tuple(
        torch.randn(s, dtype=torch.float64, requires_grad=True) for s in ((3, 2), (3, 2), (2, 2), (2, 2))
    )
}
