# expect: nonfinite-gradient
import torch


class RowNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = (x * x).sum(-1).sqrt()
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx, grad_output):
        x, y = ctx.saved_tensors
        return (grad_output / y).unsqueeze(-1) * x


def with_padding():
    x = torch.randn(4, 3, dtype=torch.float64)
    x[3] = 0  # padding
    return (x.requires_grad_(),)


gradsmith_inputs = {"RowNorm": [lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),), with_padding]}
