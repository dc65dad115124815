# expect: host-sync
import torch


class ClipByNorm(torch.autograd.Function):  # gradsmith: surrogate[clip]
    @staticmethod
    def forward(ctx, x, limit: float):
        ctx.limit = limit
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad_output):
        norm = grad_output.norm().item()
        if norm > ctx.limit:
            return grad_output * (ctx.limit / norm), None
        return grad_output, None


gradsmith_inputs = {"ClipByNorm": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True), 1.0)}
