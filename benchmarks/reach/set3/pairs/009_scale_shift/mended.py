import torch


def _reduce(grad, shape):
    """Sums a gradient to the shape of an argument that was broadcast."""
    return grad.sum_to_size(shape)


class ScaleShift(torch.autograd.Function):
    """x * scale + shift for real x, with scale and shift of any shape that is broadcast to x."""

    @staticmethod
    def forward(ctx, x, scale, shift):
        if torch.broadcast_shapes(x.shape, scale.shape, shift.shape) != x.shape:
            raise ValueError("scale and shift must be broadcast to x")
        out = x * scale + shift
        if out.is_complex():
            raise TypeError("real tensors only")
        ctx.save_for_backward(x, scale)
        ctx.shift_shape = shift.shape
        return out

    @staticmethod
    def backward(ctx, grad):
        x, scale = ctx.saved_tensors
        return grad * scale, _reduce(grad * x, scale.shape), _reduce(grad, ctx.shift_shape)


gradsmith_inputs = {
    "ScaleShift": lambda: (
        torch.randn(4, 3, requires_grad=True),
        torch.randn(3, requires_grad=True),
        torch.randn(3, requires_grad=True),
    )
}
