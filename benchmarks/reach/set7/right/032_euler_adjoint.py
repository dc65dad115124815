import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable


class LogisticEuler(Function):
    """n explicit Euler steps of dy/dt = r y (1 - y); only every fourth state is stored, the rest is run again."""

    EVERY = 4

    @staticmethod
    def _step(y, r, h):
        return y + h * r * y * (1 - y)

    @staticmethod
    def forward(ctx, y, r, h, n):
        if y.shape != r.shape or y.is_complex() or r.is_complex():
            raise ValueError("y and r must be real and of one shape")
        h = float(h)
        kept = []
        for i in range(n):
            if i % LogisticEuler.EVERY == 0:
                kept.append(y)
            y = LogisticEuler._step(y, r, h)
        ctx.save_for_backward(r, *kept)
        ctx.h, ctx.n = h, n
        return y.clone()

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        r, *kept = ctx.saved_tensors
        gr = torch.zeros_like(r)
        for block in range(len(kept) - 1, -1, -1):
            steps = min(LogisticEuler.EVERY, ctx.n - block * LogisticEuler.EVERY)
            ys = [kept[block]]
            for _ in range(steps - 1):
                ys.append(LogisticEuler._step(ys[-1], r, ctx.h))
            for y in reversed(ys):
                gr = gr + g * ctx.h * y * (1 - y)
                g = g * (1 + ctx.h * r * (1 - 2 * y))
        return g, gr, None, None


gradsmith_inputs = {
    "LogisticEuler": lambda: (torch.rand(3, requires_grad=True), torch.rand(3).add(0.5).requires_grad_(), 0.1, 10)
}
