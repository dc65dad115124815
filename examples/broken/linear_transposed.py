# expect: wrong-gradient
"""Linear layer with its own backward."""
import torch


class MyLinear(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x @ weight.t()

    @staticmethod
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        grad_x = grad_weight = None
        if ctx.needs_input_grad[0]:
            grad_x = grad_output @ weight
        if ctx.needs_input_grad[1]:
            grad_weight = x.t() @ grad_output
        return grad_x, grad_weight


gradsmith_inputs = {
    "MyLinear": lambda: (
        torch.randn(4, 3, dtype=torch.float64, requires_grad=True),
        torch.randn(3, 3, dtype=torch.float64, requires_grad=True),
    )
}
