import torch


class ClampBetween(torch.autograd.Function):
    """clamp(x, lo, hi) where the bounds learn too; lo < hi everywhere."""

    @staticmethod
    def forward(ctx, x, lo, hi):
        if x.is_complex() or lo.shape != x.shape[-1:] or hi.shape != lo.shape:
            raise ValueError("bounds need one entry per column")
        if bool((lo >= hi).any()):
            raise ValueError("lo must be below hi")
        ctx.save_for_backward(x, lo, hi)
        return torch.minimum(torch.maximum(x, lo), hi)

    @staticmethod
    def backward(ctx, grad):
        x, lo, hi = ctx.saved_tensors
        below, above = x < lo, x > hi
        return (
            grad.masked_fill(below | above, 0.0),
            grad.masked_fill(~below, 0.0).sum_to_size(lo.shape),
            grad.masked_fill(~above, 0.0).sum_to_size(hi.shape),
        )


gradsmith_inputs = {
    "ClampBetween": lambda: (
        torch.randn(4, 3, requires_grad=True),
        torch.full((3,), -0.5, requires_grad=True),
        torch.full((3,), 0.6, requires_grad=True),
    )
}
