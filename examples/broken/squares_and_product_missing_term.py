# expect: wrong-gradient
import torch


class SquaresAndProduct(torch.autograd.Function):
    """x^2 + y^2 and x * y in one go."""

    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x * x + y * y, x * y

    @staticmethod
    def backward(ctx, grad_sum, grad_product):
        x, y = ctx.saved_tensors
        grad_x = 2 * x * grad_sum
        grad_y = 2 * y * grad_sum + x * grad_product
        return grad_x, grad_y


gradsmith_inputs = {
    "SquaresAndProduct": lambda: (
        torch.randn(4, 3, dtype=torch.float64, requires_grad=True),
        torch.randn(4, 3, dtype=torch.float64, requires_grad=True),
    )
}
