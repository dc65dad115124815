import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable


class ScaledLinear(Function):
    """(x W^T + bias) * scale; bias and scale may be None (IA3-style adapters)."""

    @staticmethod
    def forward(ctx, x, weight, bias=None, scale=None):
        if x.dim() != 2 or x.is_complex() or weight.is_complex():
            raise TypeError("x must be a real (B, I) tensor")
        for extra in (bias, scale):
            if extra is not None and (extra.shape != weight.shape[:1] or extra.is_complex()):
                raise ValueError("bias and scale need one real entry per output")
        y = x @ weight.t()
        saved = [x, weight]
        if bias is not None:
            y = y + bias
            saved.append(bias)
        if scale is not None:
            y = y * scale
            saved.append(scale)
        ctx.save_for_backward(*saved)
        ctx.has_bias, ctx.has_scale = bias is not None, scale is not None
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        x, weight, *extra = ctx.saved_tensors
        bias = extra[0] if ctx.has_bias else None
        scale = extra[-1] if ctx.has_scale else None
        grad_bias = grad_scale = None
        if scale is not None:
            if ctx.needs_input_grad[3]:
                y = x @ weight.t()
                grad_scale = (grad * (y if bias is None else y + bias)).sum(0)
            grad = grad * scale
        if ctx.needs_input_grad[2]:
            grad_bias = grad.sum(0)
        return grad @ weight, grad.t() @ x, grad_bias, grad_scale


gradsmith_inputs = {
    "ScaledLinear": lambda: (
        torch.randn(4, 3, requires_grad=True),
        torch.randn(2, 3, requires_grad=True),
        torch.randn(2, requires_grad=True),
        torch.rand(2, requires_grad=True),
    )
}
