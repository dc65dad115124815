# expect: ctx-signature
import torch


class Softsign(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x / (1 + x.abs())

    @staticmethod
    def setup_context(ctx, inputs, output):
        (x,) = inputs
        ctx.save_for_backward(x)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output / (1 + x.abs()) ** 2


gradsmith_inputs = {"Softsign": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
