import math

import torch


class StudentT(torch.autograd.Function):
    """Log density of Student's t with `df` degrees of freedom and scale > 0, at real x of the shape of scale."""

    @staticmethod
    def forward(ctx, x, scale, df=4.0):
        if x.is_complex() or x.shape != scale.shape or not bool((scale > 0).all()) or df <= 0:
            raise ValueError("scale positive, of the shape of x; df positive")
        ctx.save_for_backward(x, scale)
        ctx.df = df
        const = math.lgamma((df + 1) / 2) - math.lgamma(df / 2) - 0.5 * math.log(df * math.pi)
        return const - scale.log() - (df + 1) / 2 * torch.log1p((x / scale) ** 2 / df)

    @staticmethod
    def backward(ctx, grad):
        x, scale = ctx.saved_tensors
        z = x / scale
        k = (ctx.df + 1) * z / (ctx.df + z * z)
        return -grad * k / scale, grad * (k * z) / scale, None


gradsmith_inputs = {"StudentT": lambda: (torch.randn(5, requires_grad=True), (torch.rand(5) + 0.5).requires_grad_())}
