"""Three custom gradients, as one would write them on a first afternoon. Two of them are wrong.

gradsmith check examples/first_gradient.py
"""

import torch


class Swish(torch.autograd.Function):
    """x * sigmoid(beta * x) with a beta that is learned."""

    @staticmethod
    def forward(ctx, x, beta):
        ctx.save_for_backward(x, beta)
        return x * torch.sigmoid(beta * x)

    @staticmethod
    def backward(ctx, grad_output):
        x, beta = ctx.saved_tensors
        s = torch.sigmoid(beta * x)
        slope = s * (1 - s)
        grad_x = grad_output * (s + beta * x * slope)
        grad_beta = (grad_output * x * slope).sum()
        return grad_x, grad_beta


class Linear(torch.autograd.Function):
    """x @ weight.T + bias"""

    @staticmethod
    def forward(ctx, x, weight, bias):
        ctx.save_for_backward(x, weight)
        return x @ weight.t() + bias

    @staticmethod
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        grad_x = grad_weight = grad_bias = None
        if ctx.needs_input_grad[0]:
            grad_x = grad_output @ weight
        if ctx.needs_input_grad[1]:
            grad_weight = grad_output.t() @ x
        if ctx.needs_input_grad[2]:
            grad_bias = grad_output.sum(0)
        return grad_x, grad_weight, grad_bias


class LeakyClamp(torch.autograd.Function):
    """Clamp to [low, high]; outside, a tenth of the gradient goes on."""

    @staticmethod
    def forward(ctx, x, low, high):
        ctx.save_for_backward(x)
        ctx.low, ctx.high = low, high
        return x.clamp(low, high) + 0.1 * (x - x.clamp(low, high))

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        outside = (x < ctx.low) | (x > ctx.high)
        grad_output[outside] *= 0.1
        return grad_output, None, None


def _normal(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64, requires_grad=True)


gradsmith_inputs = {
    "Swish": lambda: (_normal(4, 3), torch.tensor(1.5, dtype=torch.float64, requires_grad=True)),
    "Linear": lambda: (_normal(4, 3), _normal(5, 3), _normal(5)),
    "LeakyClamp": lambda: (_normal(4, 3), -0.5, 0.5),
}
