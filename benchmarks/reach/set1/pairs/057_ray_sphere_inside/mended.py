import torch


class RaySphere(torch.autograd.Function):
    """Distance t > 0 to the first hit of rays (o, d), |d| = 1, with a sphere at the origin of radius r. All rays hit."""

    @staticmethod
    def forward(ctx, o, d, r):
        b = (o * d).sum(-1)
        c = (o * o).sum(-1) - r * r
        root = (b * b - c).clamp_min(0).sqrt()
        near, far = -b - root, -b + root
        t = torch.where(near > 0, near, far)
        sign = torch.where(near > 0, -torch.ones_like(t), torch.ones_like(t))
        ctx.save_for_backward(o, d, r, root, b, sign)
        return t

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, g):
        o, d, r, root, b, sign = ctx.saved_tensors
        # t = -b +- sqrt(b^2 - c)
        k = sign / root
        dt_db = -1 + k * b
        gb = g * dt_db
        gc = -0.5 * g * k
        go = gb[:, None] * d + 2 * gc[:, None] * o
        gd = gb[:, None] * o
        gr = (-2 * r * gc).sum()
        return go, gd, gr


def _camera():
    o = torch.tensor([[0.1, 0.2, -3.0], [0.0, 0.3, -4.0], [-0.2, 0.1, -2.5]], dtype=torch.float64)
    d = torch.tensor([[0.0, 0.0, 1.0]], dtype=torch.float64).repeat(3, 1)
    return o.requires_grad_(), d.requires_grad_(), torch.tensor(1.0, dtype=torch.float64, requires_grad=True)


gradsmith_inputs = {"RaySphere": _camera}
