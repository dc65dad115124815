import torch
import torch.nn.functional as F
from torch.autograd import Function
from torch.autograd.function import once_differentiable


class SelectiveScan(Function):
    """Mamba's reference recurrence for one sequence: u, delta (L, D), A (D, N), B, C (L, N)."""

    @staticmethod
    def forward(ctx, u, delta, A, B, C, delta_softplus=True):
        if any(t.is_complex() or t.dim() != 2 for t in (u, delta, A, B, C)):
            raise TypeError("real matrices expected")
        if u.shape != delta.shape or B.shape != C.shape or A.shape != (u.size(1), B.size(1)) or B.size(0) != u.size(0):
            raise ValueError("shapes do not fit")
        dt = F.softplus(delta) if delta_softplus else delta
        h = torch.zeros_like(A)
        ys, hs = [], [h]
        for t in range(u.size(0)):
            h = torch.exp(dt[t][:, None] * A) * h + (dt[t] * u[t])[:, None] * B[t]
            hs.append(h)
            ys.append(h @ C[t])
        ctx.save_for_backward(u, delta, dt, A, B, C, torch.stack(hs))
        ctx.delta_softplus = delta_softplus
        return torch.stack(ys)

    @staticmethod
    @once_differentiable
    def backward(ctx, dy):
        u, delta, dt, A, B, C, hs = ctx.saved_tensors
        du, ddt, dA = torch.zeros_like(u), torch.zeros_like(u), torch.zeros_like(A)
        dB, dC = torch.zeros_like(B), torch.zeros_like(C)
        dh = torch.zeros_like(A)
        for t in range(u.size(0) - 1, -1, -1):
            dh = dh + dy[t][:, None] * C[t]
            dC[t] = hs[t + 1].t() @ dy[t]
            decay = torch.exp(dt[t][:, None] * A)
            through = dh * hs[t] * decay
            from_b = dh @ B[t]
            ddt[t] = (through * A).sum(1) + from_b * u[t]
            du[t] = from_b * dt[t]
            dA += through * dt[t][:, None]
            dB[t] = (dt[t] * u[t]) @ dh
            dh = dh * decay
        return du, ddt * torch.sigmoid(delta) if ctx.delta_softplus else ddt, dA, dB, dC, None


class Scan(torch.nn.Module):
    def __init__(self, channels=3, states=2):
        super().__init__()
        self.A_log = torch.nn.Parameter(torch.log(torch.arange(1.0, states + 1).repeat(channels, 1)))

    def forward(self, u, delta, B, C):
        return SelectiveScan.apply(u, delta, -torch.exp(self.A_log), B, C, True)


def _inputs():
    length, channels, states = 4, 3, 2
    return (
        torch.randn(length, channels, requires_grad=True),
        torch.randn(length, channels, requires_grad=True),
        (-torch.rand(channels, states)).requires_grad_(),
        torch.randn(length, states, requires_grad=True),
        torch.randn(length, states, requires_grad=True),
        True,
    )


gradsmith_inputs = {"SelectiveScan": _inputs}
