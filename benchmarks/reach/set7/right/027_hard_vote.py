import torch
from torch.autograd import Function


class HardVote(Function):
    """x times the (constant) majority sign of its row: the sign has no slope, so nothing flows through it."""

    @staticmethod
    def forward(ctx, x):
        if not x.is_floating_point() or x.dim() < 1:
            raise TypeError("real input expected")
        vote = x.sign().sum(-1, keepdim=True).sign()
        ctx.save_for_backward(vote)
        return x * vote

    @staticmethod
    def backward(ctx, grad):
        (vote,) = ctx.saved_tensors
        return grad * vote


gradsmith_inputs = {"HardVote": lambda: (torch.randn(4, 5, requires_grad=True),)}
