import torch


class SinhGrad(torch.autograd.Function):
    """g * cosh(x), itself differentiable in both."""

    @staticmethod
    def forward(ctx, x, g):
        ctx.save_for_backward(x, g)
        return g * x.cosh()

    @staticmethod
    def backward(ctx, gg):
        x, g = ctx.saved_tensors
        return gg * g * x.sinh(), gg * x.cosh()


class SinhExplicit(torch.autograd.Function):
    """sinh(x) with an explicit second order."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sinh()

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return SinhGrad.apply(x, g)


gradsmith_inputs = {
    "SinhExplicit": lambda: (torch.randn(5, dtype=torch.float64, requires_grad=True),),
    "SinhGrad": lambda: (
        torch.randn(5, dtype=torch.float64, requires_grad=True),
        torch.randn(5, dtype=torch.float64, requires_grad=True),
    ),
}
