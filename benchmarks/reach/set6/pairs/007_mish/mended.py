import torch
import torch.nn.functional as F


class Mish(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * torch.tanh(F.softplus(x))

    @staticmethod
    def backward(ctx, grad_output):
        x, = ctx.saved_tensors
        t = torch.tanh(F.softplus(x))
        sig = torch.sigmoid(x)
        return grad_output * (t + x * sig * (1 - t * t))


gradsmith_inputs = {"Mish": lambda: (torch.linspace(-4, 4, 9, dtype=torch.float64, requires_grad=True),)}
