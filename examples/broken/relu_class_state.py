# expect: class-state
import torch


class ReLU(torch.autograd.Function):
    mask = None

    @staticmethod
    def forward(ctx, x):
        ReLU.mask = x > 0
        return x * ReLU.mask

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * ReLU.mask


gradsmith_inputs = {"ReLU": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
