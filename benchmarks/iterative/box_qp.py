"""Quadratic programs with bounds, by ADMM, as a layer."""

import torch


class BoxQP(torch.autograd.Function):
    """The x within [-1, 1] that minimises x^T Q x / 2 + q^T x, for each row of q; Q is symmetric and positive definite."""

    @staticmethod
    def forward(ctx, quadratic, q):
        quadratic = (quadratic + quadratic.mT) / 2
        rho = 200.0
        eye = torch.eye(q.shape[-1], dtype=q.dtype)
        factor = torch.linalg.inv(quadratic + rho * eye)
        z = torch.zeros_like(q)
        u = torch.zeros_like(q)
        for _ in range(20_000):
            x = (rho * (z - u) - q) @ factor
            following = (x + u).clamp(-1, 1)
            u = u + x - following
            change = torch.maximum((following - z).abs().max(), (x - following).abs().max())
            z = following
            if change < 1e-13:
                break
        ctx.save_for_backward(quadratic, z)
        return z

    @staticmethod
    def backward(ctx, grad_output):
        quadratic, z = ctx.saved_tensors
        grad_q = -torch.linalg.solve(quadratic, grad_output.mT).mT
        grad_quadratic = grad_q.mT @ z
        return (grad_quadratic + grad_quadratic.mT) / 2, grad_q


def programs():
    root = torch.randn(6, 6, dtype=torch.float64)
    quadratic = root @ root.T + 0.02 * torch.eye(6, dtype=torch.float64)
    return quadratic.requires_grad_(), torch.randn(8, 6, dtype=torch.float64).mul(2).requires_grad_()


gradsmith_inputs = {"BoxQP": programs}
