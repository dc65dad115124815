# expect: unreduced-broadcast
import torch


class ChannelBias(torch.autograd.Function):
    """x: (batch, channel, length), bias: (channel,)"""

    @staticmethod
    def forward(ctx, x, bias):
        return x + bias[:, None]

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output, grad_output.sum(0)


gradsmith_inputs = {
    "ChannelBias": lambda: (
        torch.randn(4, 3, 3, dtype=torch.float64, requires_grad=True),
        torch.randn(3, dtype=torch.float64, requires_grad=True),
    )
}
