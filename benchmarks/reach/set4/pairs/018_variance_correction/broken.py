import torch


class Variance(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, correction=0):
        d = x - x.mean(-1, keepdim=True)
        ctx.save_for_backward(d)
        ctx.correction = correction
        return d.square().sum(-1) / (x.shape[-1] - correction)

    @staticmethod
    def backward(ctx, grad):
        (d,) = ctx.saved_tensors
        return grad.unsqueeze(-1) * 2 * d / d.shape[-1], None


gradsmith_inputs = {"Variance": lambda: (torch.randn(3, 5, requires_grad=True),)}
