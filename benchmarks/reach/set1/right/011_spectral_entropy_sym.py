import torch


class VonNeumannEntropy(torch.autograd.Function):
    """-tr(A log A) of a symmetric positive definite matrix; A is symmetrised before use."""

    @staticmethod
    def forward(ctx, a):
        assert torch.allclose(a, a.t(), atol=1e-3), "A must be symmetric"
        lam, q = torch.linalg.eigh(0.5 * (a + a.t()))
        assert lam[0] > 0, "A must be positive definite"
        ctx.save_for_backward(lam, q)
        return -(lam * lam.log()).sum()

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, g):
        lam, q = ctx.saved_tensors
        return g * (q * (-lam.log() - 1)) @ q.t()


def _state(n=4):
    x = torch.randn(n, 3 * n, dtype=torch.float64)
    return ((x @ x.t()) / (3 * n)).requires_grad_()


gradsmith_inputs = {"VonNeumannEntropy": lambda: (_state(),)}
