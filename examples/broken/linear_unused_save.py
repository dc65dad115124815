# expect: unused-save
import torch


class LinearReLU(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        hidden = x @ weight.t()
        y = hidden.clamp(min=0)
        ctx.save_for_backward(x, weight, hidden, y)
        return y

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad_output):
        x, weight, hidden, y = ctx.saved_tensors
        h = grad_output * (y > 0)
        grad_x = h @ weight if ctx.needs_input_grad[0] else None
        grad_weight = h.t() @ x if ctx.needs_input_grad[1] else None
        return grad_x, grad_weight


gradsmith_inputs = {
    "LinearReLU": lambda: (
        torch.randn(4, 3, dtype=torch.float64, requires_grad=True),
        torch.randn(5, 3, dtype=torch.float64, requires_grad=True),
    )
}
