import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable


class AdditiveCoupling(Function):
    """y1 = x1 + tanh(x2 A), y2 = x2 + tanh(y1 B). Only the outputs are stored; the inputs are rebuilt."""

    @staticmethod
    def forward(ctx, x1, x2, a, b):
        if any(t.is_complex() or t.dim() != 2 for t in (x1, x2, a, b)) or x1.shape != x2.shape:
            raise TypeError("real matrices expected, x1 and x2 of one shape")
        y1 = x1 + torch.tanh(x2 @ a)
        y2 = x2 + torch.tanh(y1 @ b)
        ctx.save_for_backward(y1, y2, a, b)
        return y1, y2

    @staticmethod
    @once_differentiable
    def backward(ctx, g1, g2):
        y1, y2, a, b = ctx.saved_tensors
        t2 = torch.tanh(y1 @ b)
        x2 = y2 - t2
        s2 = g2 * (1 - t2 * t2)
        g1 = g1 + s2 @ b.t()
        t1 = torch.tanh(x2 @ a)
        s1 = g1 * (1 - t1 * t1)
        return g1, g2 + s1 @ a.t(), x2.t() @ s1, y1.t() @ s2


gradsmith_inputs = {
    "AdditiveCoupling": lambda: (
        torch.randn(4, 3, requires_grad=True),
        torch.randn(4, 3, requires_grad=True),
        torch.randn(3, 3, requires_grad=True),
        torch.randn(3, 3, requires_grad=True),
    )
}
