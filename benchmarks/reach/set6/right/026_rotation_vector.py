import torch


def _series(t2):
    """sin(t)/t, (1-cos t)/t^2 and their derivatives divided by t, with series for small angles."""
    small = t2 < 1e-2
    t = torch.where(small, torch.ones_like(t2), t2).sqrt()
    a = torch.where(small, 1 - t2 / 6 * (1 - t2 / 20 * (1 - t2 / 42 * (1 - t2 / 72))), t.sin() / t)
    b = torch.where(small, 0.5 - t2 / 24 * (1 - t2 / 30 * (1 - t2 / 56 * (1 - t2 / 90))), (1 - t.cos()) / t**2)
    da = torch.where(small, -1 / 3 + t2 / 30 * (1 - t2 / 28 * (1 - t2 / 54)), (t * t.cos() - t.sin()) / t**3)
    db = torch.where(small, -1 / 12 + t2 / 180 * (1 - t2 * 3 / 112 * (1 - t2 * 2 / 135)), (t * t.sin() - 2 + 2 * t.cos()) / t**4)
    return a, b, da, db


class RotateByVector(torch.autograd.Function):
    """Rodrigues: rotates p (N, 3) about the rotation vectors w (N, 3); exact also where w is zero."""

    @staticmethod
    def forward(ctx, w, p):
        if w.dim() != 2 or w.shape[1] != 3 or p.shape != w.shape:
            raise ValueError("w and p must both be (N, 3)")
        a, b, _, _ = _series(w.square().sum(1, keepdim=True))
        ctx.save_for_backward(w, p)
        c = torch.linalg.cross(w, p)
        return p + a * c + b * torch.linalg.cross(w, c)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, g):
        w, p = ctx.saved_tensors
        a, b, da, db = _series(w.square().sum(1, keepdim=True))
        cross = torch.linalg.cross
        c = cross(w, p)
        cc = cross(w, c)
        gp = g - a * cross(w, g) + b * cross(w, cross(w, g))
        gw = a * cross(p, g) + b * (cross(c, g) + cross(p, cross(g, w)))
        gw = gw + w * (g * (da * c + db * cc)).sum(1, keepdim=True)
        return gw, gp


def example():
    torch.manual_seed(0)
    w = torch.tensor([[0.0, 0.0, 0.0], [0.3, -0.2, 1.0], [1e-3, 0.0, 2e-3], [2.0, 1.0, 0.5]], dtype=torch.float64)
    return w.requires_grad_(), torch.randn(4, 3, dtype=torch.float64, requires_grad=True)


gradsmith_inputs = {"RotateByVector": example}
