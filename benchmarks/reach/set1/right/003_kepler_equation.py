import torch


class Kepler(torch.autograd.Function):
    """Eccentric anomaly E with E - e sin E = M, 0 <= e < 1."""

    @staticmethod
    def forward(ctx, M, e):
        assert ((e >= 0) & (e < 1)).all(), "elliptic orbits only"
        E = M + e * M.sin()
        for _ in range(100):
            step = (E - e * E.sin() - M) / (1 - e * E.cos())
            E = E - step
            if step.abs().max() < 1e-13:
                break
        ctx.save_for_backward(E, e)
        return E

    @staticmethod
    def backward(ctx, g):
        E, e = ctx.saved_tensors
        gM = g / (1 - e * E.cos())
        return gM, gM * E.sin()


gradsmith_inputs = {
    "Kepler": lambda: (
        (6 * torch.rand(5, dtype=torch.float64)).requires_grad_(),
        (0.1 + 0.6 * torch.rand(5, dtype=torch.float64)).requires_grad_(),
    )
}
