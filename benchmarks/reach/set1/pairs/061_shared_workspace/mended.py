import torch




class CubicAct(torch.autograd.Function):
    """x + a x^3."""

    @staticmethod
    def forward(ctx, x, a):
        ctx.save_for_backward(x)
        ctx.a = a
        return x + a * x**3

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        out = torch.empty_like(x)
        torch.mul(x, x, out=out)
        out.mul_(3 * ctx.a).add_(1).mul_(g)
        return out, None


gradsmith_inputs = {"CubicAct": lambda: (torch.randn(4, 3, requires_grad=True), 0.2)}
