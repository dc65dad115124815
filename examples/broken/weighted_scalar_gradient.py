# expect: gradient-shape
import torch


class WeightedSum(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return (x * weight).sum()

    @staticmethod
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        return grad_output * weight, (grad_output * x).sum()


gradsmith_inputs = {
    "WeightedSum": lambda: (
        torch.randn(6, dtype=torch.float64, requires_grad=True),
        torch.randn(6, dtype=torch.float64, requires_grad=True),
    )
}
