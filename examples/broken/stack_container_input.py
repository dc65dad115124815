# expect: container-input
import torch
from torch import Tensor


class SumOfSquares(torch.autograd.Function):
    @staticmethod
    def forward(ctx, tensors: list[Tensor]) -> Tensor:
        ctx.save_for_backward(*tensors)
        return sum((t * t).sum() for t in tensors)

    @staticmethod
    def backward(ctx, grad_output):
        return [2 * t * grad_output for t in ctx.saved_tensors]


def parameters():
    return ([torch.randn(n, dtype=torch.float64, requires_grad=True) for n in (3, 2)],)


gradsmith_inputs = {"SumOfSquares": parameters}
