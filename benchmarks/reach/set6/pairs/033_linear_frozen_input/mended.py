import torch


class Linear(torch.autograd.Function):
    """x @ weight.T + bias for x (N, in)."""

    @staticmethod
    def forward(ctx, x, weight, bias):
        if any(t.is_complex() for t in (x, weight, bias)):
            raise ValueError("complex numbers are not supported")
        if x.dim() != 2 or weight.dim() != 2 or bias.shape != weight.shape[:1]:
            raise ValueError("x (N, in), weight (out, in), bias (out,)")
        ctx.save_for_backward(x, weight)
        return torch.addmm(bias, x, weight.t())

    @staticmethod
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        grad_x = grad_weight = grad_bias = None
        if ctx.needs_input_grad[0]:
            grad_x = grad_output.mm(weight)
        if ctx.needs_input_grad[1]:
            grad_weight = grad_output.t().mm(x)
        if ctx.needs_input_grad[2]:
            grad_bias = grad_output.sum(0)
        return grad_x, grad_weight, grad_bias


def example():
    torch.manual_seed(0)
    return (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),
            torch.randn(2, 3, dtype=torch.float64, requires_grad=True),
            torch.randn(2, dtype=torch.float64, requires_grad=True))


gradsmith_inputs = {"Linear": example}
