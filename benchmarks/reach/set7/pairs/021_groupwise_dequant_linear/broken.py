import torch
from torch.autograd import Function


class QuantLinear(Function):
    """x @ W^T with W = q * scale, one scale per output row and group of input columns (GPTQ layout)."""

    @staticmethod
    def forward(ctx, x, q, scale, group_size):
        if x.is_complex() or q.is_floating_point() or q.dim() != 2:
            raise TypeError("x must be real and q integer")
        if q.size(1) % group_size or scale.shape != (q.size(0), q.size(1) // group_size):
            raise ValueError("scale must be (out, in / group_size)")
        if ctx.needs_input_grad[2]:
            raise ValueError("the weights are frozen")
        ctx.save_for_backward(q, scale)
        ctx.group_size = group_size
        w = q.to(x.dtype).unflatten(1, (-1, group_size)) * scale[..., None].to(x.dtype)
        return x @ w.flatten(1).t()

    @staticmethod
    def backward(ctx, grad_output):
        q, scale = ctx.saved_tensors
        s = scale.repeat(1, ctx.group_size)
        return grad_output @ (q.to(grad_output.dtype) * s.to(grad_output.dtype)), None, None, None


class LoraBase(torch.nn.Module):
    def __init__(self, q=None, scale=None, group_size=8):
        super().__init__()
        self.register_buffer("q", torch.ones(4, 8, dtype=torch.int8) if q is None else q)
        self.register_buffer("scale", torch.ones(4, 1) if scale is None else scale)
        self.group_size = group_size

    def forward(self, x):
        return QuantLinear.apply(x, self.q, self.scale, self.group_size)


gradsmith_inputs = {
    "QuantLinear": lambda: (
        torch.randn(3, 8, requires_grad=True),
        torch.randint(-8, 8, (4, 8), dtype=torch.int8),
        torch.rand(4, 1),
        8,
    )
}
