# expect: unpack-count
import torch


class Swish(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, beta):
        y = x * torch.sigmoid(beta * x)
        ctx.save_for_backward(x, beta, y)
        return y

    @staticmethod
    def backward(ctx, grad_output):
        x, beta = ctx.saved_tensors
        s = torch.sigmoid(beta * x)
        grad_x = grad_output * (s + beta * x * s * (1 - s))
        grad_beta = (grad_output * x * x * s * (1 - s)).sum()
        return grad_x, grad_beta


gradsmith_inputs = {
    "Swish": lambda: (
        torch.randn(4, 3, dtype=torch.float64, requires_grad=True),
        torch.tensor(1.5, dtype=torch.float64, requires_grad=True),
    )
}
