import torch


class ScaledSoftmax(torch.autograd.Function):
    """softmax(scale * x) along dim."""

    @staticmethod
    def forward(ctx, x, scale, dim):
        z = x * scale
        z = z - z.amax(dim=dim, keepdim=True)
        e = z.exp()
        y = e / e.sum(dim=dim, keepdim=True)
        ctx.save_for_backward(y)
        ctx.scale, ctx.dim = scale, dim
        return y

    @staticmethod
    def backward(ctx, grad_output):
        (y,) = ctx.saved_tensors
        inner = (grad_output * y).sum(-1, keepdim=True)
        return ctx.scale * y * (grad_output - inner), None, None


gradsmith_inputs = {"ScaledSoftmax": lambda: (torch.randn(3, 5, dtype=torch.float64, requires_grad=True), 0.5, -1)}
