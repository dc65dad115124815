import torch


def lap(u, boundary):
    if boundary == "periodic":
        return u.roll(1, -1) + u.roll(-1, -1) - 2 * u
    pad = torch.cat([u[..., :1], u, u[..., -1:]], -1)
    return pad[..., :-2] + pad[..., 2:] - 2 * u


class HeatStep(torch.autograd.Function):
    """`steps` explicit steps u += k lap(u); boundary "periodic" or "neumann". Nothing is stored in between."""

    @staticmethod
    def forward(ctx, u, k, steps, boundary):
        ctx.args = k, steps, boundary
        for _ in range(steps):
            u = u + k * lap(u, boundary)
        return u

    @staticmethod
    def backward(ctx, g):
        k, steps, boundary = ctx.args
        for _ in range(steps):
            # the discrete Laplacian is its own adjoint
            g = g + k * lap(g, boundary)
        return g, None, None, None


gradsmith_inputs = {"HeatStep": lambda: (torch.randn(2, 9, requires_grad=True), 0.2, 4, "periodic")}
