# expect: no-autocast
import torch
import torch.nn as nn


class MatMul(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x @ weight

    @staticmethod
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        grad_x = grad_weight = None
        if ctx.needs_input_grad[0]:
            grad_x = grad_output @ weight.t()
        if ctx.needs_input_grad[1]:
            grad_weight = x.t() @ grad_output
        return grad_x, grad_weight


class Head(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(inputs, outputs))

    def forward(self, x):
        with torch.autocast(x.device.type, dtype=torch.bfloat16):
            return MatMul.apply(x, self.weight)


gradsmith_inputs = {
    "MatMul": lambda: (
        torch.randn(4, 3, dtype=torch.float64, requires_grad=True),
        torch.randn(3, 5, dtype=torch.float64, requires_grad=True),
    )
}
