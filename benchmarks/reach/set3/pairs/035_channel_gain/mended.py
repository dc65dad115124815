import torch


class ChannelGain(torch.autograd.Function):
    """x * gain, one gain (C,) for each entry of the last dim of x; real or complex."""

    @staticmethod
    def forward(ctx, x, gain):
        if gain.shape != x.shape[-1:] or x.dtype != gain.dtype:
            raise ValueError("gain must be (C,), of the dtype of x")
        ctx.save_for_backward(x, gain)
        return x * gain

    @staticmethod
    def backward(ctx, grad):
        x, gain = ctx.saved_tensors
        return grad * gain.conj(), (grad * x.conj()).sum_to_size(gain.shape)


gradsmith_inputs = {"ChannelGain": lambda: (torch.randn(4, 3, requires_grad=True), torch.randn(3, requires_grad=True))}
