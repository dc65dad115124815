import torch


class WeightNorm(torch.autograd.Function):
    """w = g * v / |v|, the norm per output channel over all other dims; v (O, ...) without zero rows, g (O,)."""

    @staticmethod
    def forward(ctx, v, g):
        shape = (-1,) + (1,) * (v.dim() - 1)
        norm = v.flatten(1).norm(dim=1).view(shape)
        ctx.save_for_backward(v, g, norm)
        return v * (g.view(shape) / norm)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, gw):
        v, g, norm = ctx.saved_tensors
        unit = v / norm
        dot = (gw * unit).sum(1, keepdim=True)
        gg = dot.flatten(1).sum(1)
        gv = g.view(norm.shape) / norm * (gw - unit * dot)
        return gv, gg


gradsmith_inputs = {
    "WeightNorm": lambda: (torch.randn(4, 6, requires_grad=True), torch.rand(4).add(0.5).requires_grad_())
}
