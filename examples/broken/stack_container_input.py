# expect: container-input
import torch
from torch import Tensor


class SumOfSquares(torch.autograd.Function):
    @staticmethod
    def forward(ctx, tensors: list[Tensor], scale: Tensor) -> Tensor:
        ctx.save_for_backward(scale, *tensors)
        return scale * sum((t * t).sum() for t in tensors)

    @staticmethod
    def backward(ctx, grad_output):
        scale, *tensors = ctx.saved_tensors
        total = sum((t * t).sum() for t in tensors)
        return None, grad_output * total


gradsmith_inputs = {
    "SumOfSquares": lambda: (
        [torch.randn(3, dtype=torch.float64, requires_grad=True), torch.randn(2, dtype=torch.float64, requires_grad=True)],
        torch.tensor(0.5, dtype=torch.float64, requires_grad=True),
    )
}
