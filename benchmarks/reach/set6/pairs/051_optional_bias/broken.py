import torch


class ScaleShift(torch.autograd.Function):
    """x * scale (+ shift) on the last dimension."""

    @staticmethod
    def forward(x, scale, shift=None):
        if x.is_complex() or scale.is_complex():
            raise ValueError("expected real tensors")
        if x.dim() < 1 or scale.shape != x.shape[-1:] or (shift is not None and shift.shape != scale.shape):
            raise ValueError("scale and shift must be vectors of the last size of x")
        y = x * scale
        return y if shift is None else y + shift

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, scale, shift = inputs
        ctx.has_shift = shift is not None
        ctx.save_for_backward(x, scale)

    @staticmethod
    def backward(ctx, grad):
        x, scale = ctx.saved_tensors
        dims = tuple(range(grad.dim() - 1))
        reduce = (lambda t: t.sum(dims)) if dims else (lambda t: t)
        return grad * scale, reduce(grad * x), reduce(grad)


def example():
    torch.manual_seed(0)
    x = torch.randn(3, 2, dtype=torch.float64, requires_grad=True)
    return x, torch.ones(2, dtype=torch.float64, requires_grad=True), torch.zeros(2, dtype=torch.float64, requires_grad=True)


gradsmith_inputs = {"ScaleShift": example}
