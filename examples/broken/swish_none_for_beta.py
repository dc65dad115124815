# expect: none-for-tensor
import torch
from torch import Tensor


class Swish(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor, beta: Tensor) -> Tensor:
        ctx.save_for_backward(x, beta)
        return x * torch.sigmoid(beta * x)

    @staticmethod
    def backward(ctx, grad_output):
        x, beta = ctx.saved_tensors
        s = torch.sigmoid(beta * x)
        return grad_output * (s + beta * x * s * (1 - s)), None


gradsmith_inputs = {
    "Swish": lambda: (
        torch.randn(4, 3, dtype=torch.float64, requires_grad=True),
        torch.tensor(1.5, dtype=torch.float64, requires_grad=True),
    )
}
