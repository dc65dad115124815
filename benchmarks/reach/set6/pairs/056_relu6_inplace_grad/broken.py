import torch


class ReLU6(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward((x > 0) & (x < 6))
        return torch.nn.functional.relu6(x)

    @staticmethod
    def backward(ctx, grad_output):
        (active,) = ctx.saved_tensors
        return grad_output.mul_(active)


gradsmith_inputs = {"ReLU6": lambda: (torch.linspace(-3.3, 8.1, 7, dtype=torch.float64).requires_grad_(),)}
