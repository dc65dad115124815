import torch


class GRUPointwise(torch.autograd.Function):
    """Pointwise part of a GRU cell from the preactivations r, z, n and u = h @ U_n (which the reset gate scales)."""

    @staticmethod
    def forward(ctx, r, z, n, u, h):
        if any(t.is_complex() for t in (r, z, n, u, h)):
            raise ValueError("real input only")
        if not r.shape == z.shape == n.shape == u.shape == h.shape:
            raise ValueError("all five need one shape")
        ctx.save_for_backward(r, z, n, u, h)
        rs, zs = r.sigmoid(), z.sigmoid()
        ns = torch.tanh(n + rs * u)
        return (1 - zs) * ns + zs * h

    @staticmethod
    def backward(ctx, g):
        r, z, n, u, h = ctx.saved_tensors
        rs, zs = r.sigmoid(), z.sigmoid()
        ns = torch.tanh(n + rs * u)
        dn = g * (1 - zs) * (1 - ns * ns)
        dz = g * (h - ns) * zs * (1 - zs)
        dr = dn * u * rs * (1 - rs)
        return dr, dz, dn, dn * rs, g * zs


def first_step():
    torch.manual_seed(0)
    r, z, n = (torch.randn(2, 3, dtype=torch.float64, requires_grad=True) for _ in range(3))
    u, h = (torch.zeros(2, 3, dtype=torch.float64, requires_grad=True) for _ in range(2))
    return r, z, n, u, h


gradsmith_inputs = {"GRUPointwise": first_step}
