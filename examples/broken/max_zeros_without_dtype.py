# expect: creation-no-device
import torch


class RowMax(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        values, index = x.max(dim=1)
        ctx.save_for_backward(index)
        ctx.shape = x.shape
        return values

    @staticmethod
    def backward(ctx, grad_output):
        (index,) = ctx.saved_tensors
        grad_x = torch.zeros(ctx.shape)
        grad_x.scatter_(1, index[:, None], grad_output[:, None])
        return grad_x


gradsmith_inputs = {"RowMax": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
