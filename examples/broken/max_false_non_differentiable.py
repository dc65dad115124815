# expect: false-non-differentiable
import torch


class MaxAndMean(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        highest, mean = x.amax(-1), x.mean(-1)
        ctx.mark_non_differentiable(mean)
        return highest, mean

    @staticmethod
    def backward(ctx, grad_highest, grad_mean):
        (x,) = ctx.saved_tensors
        index = x.argmax(-1, keepdim=True)
        return torch.zeros_like(x).scatter(-1, index, grad_highest.unsqueeze(-1))


gradsmith_inputs = {"MaxAndMean": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
