import torch


class Leapfrog(torch.autograd.Function):
    """n kick-drift-kick steps of an anharmonic oscillator, force -k q - q^3; q, p (N,), k scalar tensor."""

    @staticmethod
    def forward(ctx, q, p, k, dt, n):
        for _ in range(n):
            p = p - 0.5 * dt * (k * q + q**3)
            q = q + dt * p
            p = p - 0.5 * dt * (k * q + q**3)
        if n == 0:
            q, p = q.clone(), p.clone()
        ctx.save_for_backward(q, p, k)
        ctx.args = dt, n
        return q, p

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, gq, gp):
        q, p, k = ctx.saved_tensors
        dt, n = ctx.args
        gk = torch.zeros_like(k)
        for _ in range(n):
            # second kick, undone, with its adjoint
            gq = gq - 0.5 * dt * (k + 3 * q * q) * gp
            gk = gk - 0.5 * dt * (q * gp).sum()
            p = p + 0.5 * dt * (k * q + q**3)
            # drift
            gp = gp + dt * gq
            q = q - dt * p
            # first kick
            gq = gq - 0.5 * dt * (k + 3 * q * q) * gp
            gk = gk - 0.5 * dt * (q * gp).sum()
            p = p + 0.5 * dt * (k * q + q**3)
        return gq, gp, gk, None, None


gradsmith_inputs = {
    "Leapfrog": lambda: (
        torch.randn(3, dtype=torch.float64, requires_grad=True),
        torch.randn(3, dtype=torch.float64, requires_grad=True),
        torch.tensor(1.0, dtype=torch.float64, requires_grad=True),
        0.05,
        10,
    )
}
