# expect: overflow
import torch


class LogisticLoss(torch.autograd.Function):
    """log(1 + exp(x)), summed"""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.log(1 + torch.exp(x)).sum()

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * torch.exp(x) / (1 + torch.exp(x))


gradsmith_inputs = {
    "LogisticLoss": [
        lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),),
        lambda: (torch.tensor([1.0, 800.0], dtype=torch.float64, requires_grad=True),),
    ]
}
