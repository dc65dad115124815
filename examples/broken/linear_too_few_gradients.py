# expect: return-count
import torch


class Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, bias):
        ctx.save_for_backward(x, weight)
        return x @ weight.t() + bias

    @staticmethod
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        return grad_output @ weight, grad_output.t() @ x


gradsmith_inputs = {
    "Linear": lambda: (
        torch.randn(4, 3, dtype=torch.float64, requires_grad=True),
        torch.randn(5, 3, dtype=torch.float64, requires_grad=True),
        torch.randn(5, dtype=torch.float64, requires_grad=True),
    )
}
