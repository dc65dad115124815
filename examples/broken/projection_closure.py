# expect: closure-tensor
import torch

weight = torch.nn.Parameter(torch.linspace(-1, 1, 15, dtype=torch.float64).reshape(5, 3))


class Project(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x @ weight.t()

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output @ weight


gradsmith_inputs = {"Project": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
