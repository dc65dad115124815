# expect: inplace-grad
import torch


class ClipGradient(torch.autograd.Function):  # gradsmith: surrogate[clip]
    @staticmethod
    def forward(ctx, x, limit: float):
        ctx.limit = limit
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output.clamp_(-ctx.limit, ctx.limit), None


gradsmith_inputs = {"ClipGradient": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True), 0.5)}
