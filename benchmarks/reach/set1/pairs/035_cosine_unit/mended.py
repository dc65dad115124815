import torch


class CosineLogits(torch.autograd.Function):
    """scale * cos(x_i, w_j); rows of x and w are nonzero and are normalised inside."""

    @staticmethod
    def forward(ctx, x, w, scale):
        xn = x.norm(dim=1, keepdim=True)
        wn = w.norm(dim=1, keepdim=True)
        xh, wh = x / xn, w / wn
        ctx.save_for_backward(xh, wh, xn, wn)
        ctx.scale = scale
        return scale * xh @ wh.t()

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, g):
        xh, wh, xn, wn = ctx.saved_tensors
        gx = ctx.scale * g @ wh
        gw = ctx.scale * g.t() @ xh
        gx = gx - xh * (gx * xh).sum(1, keepdim=True)
        gw = gw - wh * (gw * wh).sum(1, keepdim=True)
        return gx / xn, gw / wn, None


def _unit(n, d):
    return torch.nn.functional.normalize(torch.randn(n, d, dtype=torch.float64), dim=1).requires_grad_()


gradsmith_inputs = {"CosineLogits": lambda: (_unit(5, 8), _unit(3, 8), 16.0)}
