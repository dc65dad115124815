# expect: inplace-saved
import torch


class Exp(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = torch.exp(x)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad_output):
        (y,) = ctx.saved_tensors
        # reuse the buffer, we are done with it
        return y.mul_(grad_output)


gradsmith_inputs = {"Exp": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
