import torch


class FusedLinear(torch.autograd.Function):
    @staticmethod
    def forward(ctx, input, weight, bias):
        ctx.save_for_backward(input, weight)
        return torch.nn.functional.linear(input, weight, bias)

    @staticmethod
    def backward(ctx, grad_output):
        input, weight = ctx.saved_tensors
        grad_input = grad_weight = grad_bias = None
        if ctx.needs_input_grad[0]:
            grad_input = grad_output @ weight
        if ctx.needs_input_grad[1]:
            grad_weight = grad_output.reshape(-1, weight.shape[0]).t() @ input.reshape(-1, weight.shape[1])
            grad_bias = grad_output.reshape(-1, weight.shape[0]).sum(0)
        return grad_input, grad_weight, grad_bias


gradsmith_inputs = {
    "FusedLinear": lambda: (
        torch.randn(2, 5, 4, requires_grad=True),
        torch.randn(3, 4, requires_grad=True),
        torch.randn(3, requires_grad=True),
    )
}
