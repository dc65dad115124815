# expect: save-overwritten
import torch


class Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a)
        ctx.save_for_backward(b)
        return a * b

    @staticmethod
    def backward(ctx, grad_output):
        saved = ctx.saved_tensors
        return grad_output * saved[-1], grad_output * saved[0]


gradsmith_inputs = {
    "Product": lambda: (
        torch.randn(4, 3, dtype=torch.float64, requires_grad=True),
        torch.randn(4, 3, dtype=torch.float64, requires_grad=True),
    )
}
