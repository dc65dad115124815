"""Rodrigues' formula for pose refinement."""
import torch


def hat(w):
    x, y, z = w
    o = torch.zeros_like(x)
    return torch.stack([torch.stack([o, -z, y]), torch.stack([z, o, -x]), torch.stack([-y, x, o])])


def vee2(m):
    """<m, hat(e_i)> for the three axes."""
    return torch.stack([m[2, 1] - m[1, 2], m[0, 2] - m[2, 0], m[1, 0] - m[0, 1]])


class SO3Exp(torch.autograd.Function):
    """Axis-angle vector (3,) -> rotation matrix; the zero vector gives the identity."""

    @staticmethod
    def forward(ctx, w):
        th = w.norm()
        K = hat(w)
        if th < 1e-8:
            a, b = torch.ones_like(th), torch.full_like(th, 0.5)
        else:
            a, b = th.sin() / th, (1 - th.cos()) / th**2
        ctx.save_for_backward(w, K, th, a, b)
        return torch.eye(3, dtype=w.dtype) + a * K + b * K @ K

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, G):
        w, K, th, a, b = ctx.saved_tensors
        grad = a * vee2(G) + b * vee2(G @ K.t() + K.t() @ G)
        if th < 1e-8:
            return grad
        da = (th.cos() - a) / th**2
        db = (a - 2 * b) / th**2
        return grad + ((G * K).sum() * da + (G * (K @ K)).sum() * db) * w


gradsmith_inputs = {"SO3Exp": lambda: (torch.randn(3, dtype=torch.float64, requires_grad=True),)}
