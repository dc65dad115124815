# expect: repeated-unpack
import torch


class Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a * b

    @staticmethod
    def backward(ctx, grad_output):
        grad_a = grad_output * ctx.saved_tensors[1]
        grad_b = grad_output * ctx.saved_tensors[0]
        return grad_a, grad_b


gradsmith_inputs = {
    "Product": lambda: (
        torch.randn(4, 3, dtype=torch.float64, requires_grad=True),
        torch.randn(4, 3, dtype=torch.float64, requires_grad=True),
    )
}
