import torch
from torch.autograd import Function


class LinearFunction(Function):
    @staticmethod
    def forward(ctx, input, weight, bias=None):
        if input.is_complex() or weight.is_complex() or input.dim() < 2:
            raise TypeError("real input with a batch axis expected")
        if bias is not None and (bias.shape != weight.shape[:1] or bias.is_complex()):
            raise ValueError("one real bias per output")
        ctx.save_for_backward(input, weight)
        ctx.has_bias = bias is not None
        output = input.matmul(weight.t())
        return output if bias is None else output + bias

    @staticmethod
    def backward(ctx, grad_output):
        input, weight = ctx.saved_tensors
        grad_input = grad_weight = grad_bias = None
        if ctx.needs_input_grad[0]:
            grad_input = grad_output.matmul(weight)
        flat = grad_output.flatten(0, -2)
        if ctx.needs_input_grad[1]:
            grad_weight = flat.t().mm(input.flatten(0, -2))
        if ctx.has_bias and ctx.needs_input_grad[1]:
            grad_bias = flat.sum(0)
        return grad_input, grad_weight, grad_bias


class Linear(torch.nn.Module):
    def __init__(self, in_features=3, out_features=2):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(out_features, in_features))
        self.bias = torch.nn.Parameter(torch.zeros(out_features))

    def forward(self, input):
        return LinearFunction.apply(input, self.weight, self.bias)


gradsmith_inputs = {
    "LinearFunction": lambda: (
        torch.randn(4, 3, requires_grad=True),
        torch.randn(2, 3, requires_grad=True),
        torch.randn(2, requires_grad=True),
    )
}
