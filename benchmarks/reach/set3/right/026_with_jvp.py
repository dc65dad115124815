import torch


class GatedSquare(torch.autograd.Function):
    """x^2 * sigmoid(w) of real tensors, w broadcast to x; with forward mode, too."""

    @staticmethod
    def forward(ctx, x, w):
        if x.is_complex() or w.is_complex() or torch.broadcast_shapes(x.shape, w.shape) != x.shape:
            raise ValueError("real, w broadcast to x")
        ctx.save_for_backward(x, w)
        ctx.save_for_forward(x, w)
        return x * x * torch.sigmoid(w)

    @staticmethod
    def backward(ctx, grad):
        x, w = ctx.saved_tensors
        s = torch.sigmoid(w)
        return 2 * grad * x * s, (grad * x * x * s * (1 - s)).sum_to_size(w.shape)

    @staticmethod
    def jvp(ctx, dx, dw):
        x, w = ctx.saved_tensors
        s = torch.sigmoid(w)
        out = torch.zeros_like(x * w)
        if dx is not None:
            out = out + 2 * x * s * dx
        if dw is not None:
            out = out + x * x * s * (1 - s) * dw
        return out


gradsmith_inputs = {"GatedSquare": lambda: (torch.randn(3, 4, requires_grad=True), torch.randn(4, requires_grad=True))}
