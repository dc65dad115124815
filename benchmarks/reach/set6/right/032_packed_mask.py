import torch


class PackedReLU(torch.autograd.Function):
    """ReLU that stores one bit per element for backward."""

    @staticmethod
    def forward(ctx, x):
        bits = (x > 0).reshape(-1).to(torch.uint8)
        short = -bits.numel() % 8
        bits = torch.cat([bits, bits.new_zeros(short)]).view(-1, 8)
        weights = 2 ** torch.arange(8)
        ctx.save_for_backward((bits * weights).sum(1).to(torch.uint8))
        ctx.shape = x.shape
        return torch.relu(x)

    @staticmethod
    def backward(ctx, grad):
        (packed,) = ctx.saved_tensors
        bits = packed.to(torch.int64)[:, None] >> torch.arange(8) & 1
        mask = bits.reshape(-1)[:grad.numel()].view(ctx.shape)
        return grad * mask.to(grad.dtype)


def example():
    torch.manual_seed(0)
    return (torch.randn(3, 5, dtype=torch.float64, requires_grad=True),)


gradsmith_inputs = {"PackedReLU": example}
