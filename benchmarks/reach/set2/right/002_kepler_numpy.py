import numpy as np
import torch
from torch.autograd.function import once_differentiable


class KeplerSolve(torch.autograd.Function):
    """Eccentric anomaly E with E - e sin E = M, for eccentricity 0 <= e < 1 (solved in numpy)."""

    @staticmethod
    def forward(ctx, M, e):
        assert bool(((e >= 0) & (e < 1)).all()), "eccentricity must lie in [0, 1)"
        m, ecc = M.detach().numpy().astype(np.float64), e.detach().numpy().astype(np.float64)
        E = m + ecc * np.sin(m)
        for _ in range(100):
            d = (E - ecc * np.sin(E) - m) / (1 - ecc * np.cos(E))
            E = E - d
            if np.abs(d).max() < 1e-15:
                break
        out = torch.from_numpy(np.ascontiguousarray(E)).to(M.dtype)
        ctx.save_for_backward(out, e)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_output):
        E, e = ctx.saved_tensors
        g = grad_output / (1 - e * torch.cos(E))
        return g, g * torch.sin(E)


gradsmith_inputs = {
    "KeplerSolve": lambda: (
        (torch.rand(5, dtype=torch.float64) * 3).requires_grad_(),
        (torch.rand(5, dtype=torch.float64) * 0.7 + 0.05).requires_grad_(),
    )
}
