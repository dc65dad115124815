# expect: unused-output
import torch


class SinCos(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        s, c = torch.sin(x), torch.cos(x)
        ctx.save_for_backward(s, c)
        return s, c

    @staticmethod
    def backward(ctx, grad_s, grad_c):
        s, c = ctx.saved_tensors
        if grad_s is None or grad_c is None:
            return None
        return grad_s * c - grad_c * s


gradsmith_inputs = {"SinCos": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
