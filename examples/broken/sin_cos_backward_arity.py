# expect: backward-arity
import torch


class SinCos(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.sin(x), torch.cos(x)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * (torch.cos(x) - torch.sin(x))


gradsmith_inputs = {"SinCos": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
