import numpy
import torch


class PackedRelu(torch.autograd.Function):
    """relu that keeps one bit for each element."""

    @staticmethod
    def forward(ctx, x):
        mask = x > 0
        bits = numpy.packbits(mask.detach().cpu().contiguous().numpy().reshape(-1))
        ctx.save_for_backward(torch.from_numpy(bits))
        ctx.shape = x.shape
        return torch.where(mask, x, torch.zeros_like(x))

    @staticmethod
    def backward(ctx, grad):
        (bits,) = ctx.saved_tensors
        mask = numpy.unpackbits(bits.numpy(), count=ctx.shape.numel()).astype(bool)
        mask = torch.from_numpy(mask).view(ctx.shape).to(grad.device)
        return torch.where(mask, grad, torch.zeros_like(grad))


gradsmith_inputs = {"PackedRelu": lambda: (torch.randn(3, 5, requires_grad=True),)}
