import torch


def cg(a, b, iters=200):
    x = torch.zeros_like(b)
    r = b.clone()
    p = r.clone()
    rs = r @ r
    for _ in range(iters):
        if rs < 1e-28:
            break
        ap = a @ p
        alpha = rs / (p @ ap)
        x = x + alpha * p
        r = r - alpha * ap
        new = r @ r
        p = r + (new / rs) * p
        rs = new
    return x


class CGSolve(torch.autograd.Function):
    """A^-1 b for symmetric positive definite A (symmetrised inside), b (n,)."""

    @staticmethod
    def forward(ctx, a, b):
        sym = 0.5 * (a + a.t())
        x = cg(sym, b)
        ctx.save_for_backward(sym, x)
        return x

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, g):
        sym, x = ctx.saved_tensors
        v = cg(sym, g)
        outer = torch.outer(v, x)
        return -0.5 * (outer + outer.t()), v


def _system(n=5):
    m = torch.randn(n, n, dtype=torch.float64)
    return (m @ m.t() + n * torch.eye(n, dtype=torch.float64)).requires_grad_(), torch.randn(n, dtype=torch.float64, requires_grad=True)


gradsmith_inputs = {"CGSolve": _system}
