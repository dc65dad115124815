"""A deep equilibrium layer: the fixed point of one layer, and the gradient by a second fixed point."""

import torch


def layer(z, x, weight):
    return torch.tanh(z @ weight + x)


def iterate(step, z):
    for _ in range(40_000):
        following = step(z)
        change = (following - z).abs().max()
        z = following
        if change < 1e-13:
            break
    return z


class Equilibrium(torch.autograd.Function):
    """z with z = layer(z, x, weight)."""

    @staticmethod
    def forward(ctx, x, weight):
        z = iterate(lambda z: layer(z, x, weight), torch.zeros_like(x))
        ctx.save_for_backward(z, weight)
        return z

    @staticmethod
    def backward(ctx, grad_output):
        z, weight = ctx.saved_tensors
        slope = 1 - z * z
        adjoint = iterate(lambda u: grad_output + (u * slope) @ weight, grad_output)
        through = adjoint * slope
        return through, z.T @ through


def batch():
    weight = torch.linalg.qr(torch.randn(5, 5, dtype=torch.float64))[0].mul(0.9994)
    return torch.randn(4, 5, dtype=torch.float64).mul(0.002).requires_grad_(), weight.requires_grad_()


gradsmith_inputs = {"Equilibrium": batch}
