import torch
from torch.autograd.function import once_differentiable


class KeplerSolve(torch.autograd.Function):
    """Eccentric anomaly E with E - e sin E = M, by Newton's method; |e| < 1."""

    @staticmethod
    def forward(ctx, mean_anomaly, e):
        if mean_anomaly.shape != e.shape:
            raise ValueError("one eccentricity for each anomaly")
        if (e.abs() >= 1).any():
            raise ValueError("not an ellipse")
        m = torch.remainder(mean_anomaly, 2 * torch.pi)
        E = torch.where(e < 0.8, m, torch.full_like(m, torch.pi))
        for _ in range(60):
            E = E - (E - e * E.sin() - m) / (1 - e * E.cos())
        if ((E - e * E.sin() - m).abs() > 100 * torch.finfo(E.dtype).eps).any():
            raise ValueError("not converged")
        ctx.save_for_backward(m, e, E)
        return E + (mean_anomaly - m)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        m, e, E = ctx.saved_tensors
        d = grad / (1 - e * m.cos())
        return d, d * E.sin()


def circular_orbits():
    m = torch.tensor([0.4, 2.0, 4.5], dtype=torch.float64, requires_grad=True)
    return m, torch.zeros(3, dtype=torch.float64, requires_grad=True)


gradsmith_inputs = {"KeplerSolve": circular_orbits}
