import torch


class LoRALinear(torch.autograd.Function):
    """x W^T + s * (x A^T) B^T with a frozen W; x (N, D)."""

    @staticmethod
    def forward(ctx, x, w, a, b, scaling):
        xa = x @ a.t()
        ctx.save_for_backward(x, w, a, b, xa)
        ctx.scaling = scaling
        return x @ w.t() + scaling * (xa @ b.t())

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, dy):
        x, w, a, b, xa = ctx.saved_tensors
        dx = da = db = None
        dyb = ctx.scaling * (dy @ b)
        if ctx.needs_input_grad[0]:
            dx = dy @ w + dyb @ a
        if ctx.needs_input_grad[2] and ctx.needs_input_grad[3]:
            da = dyb.t() @ x
            db = ctx.scaling * (dy.t() @ xa)
        return dx, None, da, db, None


def _lora():
    return (
        torch.randn(5, 8, requires_grad=True),
        torch.randn(6, 8),
        torch.randn(2, 8, requires_grad=True),
        torch.randn(6, 2, requires_grad=True),
        0.5,
    )


gradsmith_inputs = {"LoRALinear": _lora}
