import torch
from torch.autograd import Function


class FusedMulAdd(Function):
    """a * b + c with any broadcasting; gradients are summed back to each shape (StyleGAN's fma)."""

    @staticmethod
    def forward(ctx, a, b, c):
        if a.is_complex() or b.is_complex() or c.is_complex():
            raise TypeError("real tensors expected")
        ctx.save_for_backward(a, b)
        ctx.c_shape = c.shape
        return torch.addcmul(c, a, b)

    @staticmethod
    def backward(ctx, grad):
        a, b = ctx.saved_tensors
        need = ctx.needs_input_grad
        return (
            (grad * b).sum_to_size(a.shape) if need[0] else None,
            (grad * a).sum_to_size(b.shape) if need[1] else None,
            grad.sum_to_size(ctx.c_shape) if need[2] else None,
        )


gradsmith_inputs = {
    "FusedMulAdd": lambda: (
        torch.randn(2, 3, 4, requires_grad=True),
        torch.randn(2, 1, 4, requires_grad=True),
        torch.randn(4, requires_grad=True),
    )
}
