# expect: grad-for-nontensor
import torch


class Power(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, p: int):
        ctx.save_for_backward(x)
        ctx.p = p
        return x**p

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * ctx.p * x ** (ctx.p - 1), grad_output * x**ctx.p * torch.log(x)


gradsmith_inputs = {"Power": lambda: (torch.rand(4, 3, dtype=torch.float64).add(0.5).requires_grad_(), 3)}
