from torch.autograd.function import once_differentiable
import torch


class EquilibriumLayer(torch.autograd.Function):
    """z = tanh(W z + x); W is scaled inside so that its Frobenius norm is at most 0.9."""

    @staticmethod
    def _scaled(W):
        return W * (0.9 / torch.clamp(W.norm(), min=0.9))

    @staticmethod
    def forward(ctx, x, W):
        S = EquilibriumLayer._scaled(W)
        z = torch.zeros_like(x)
        for _ in range(500):
            z = torch.tanh(S @ z + x)
        ctx.save_for_backward(W, z)
        return z

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_output):
        W, z = ctx.saved_tensors
        with torch.enable_grad():
            leaf = W.detach().requires_grad_()
            S = EquilibriumLayer._scaled(leaf)
        d = 1 - z * z
        u = grad_output.clone()
        for _ in range(500):
            u = grad_output + S.detach().t() @ (d * u)
        v = d * u
        (gW,) = torch.autograd.grad(S, leaf, torch.outer(v, z))
        return v, gW


gradsmith_inputs = {
    "EquilibriumLayer": lambda: (
        torch.randn(4, dtype=torch.float64, requires_grad=True),
        torch.randn(4, 4, dtype=torch.float64, requires_grad=True),
    )
}
