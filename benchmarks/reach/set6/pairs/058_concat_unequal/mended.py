import torch


class ConcatScaled(torch.autograd.Function):
    """cat([t * gain for t in tensors], 1) for any number of matrices with the same number of rows."""

    @staticmethod
    def forward(ctx, gain, *tensors):
        if not tensors or any(t.dim() != 2 or t.shape[0] != tensors[0].shape[0] for t in tensors):
            raise ValueError("matrices with the same number of rows")
        ctx.gain = gain
        ctx.widths = [t.shape[1] for t in tensors]
        return torch.cat([t * gain for t in tensors], 1)

    @staticmethod
    def backward(ctx, grad):
        pieces = grad.split(ctx.widths, 1)
        return (None, *(piece * ctx.gain for piece in pieces))


def example():
    torch.manual_seed(0)
    a = torch.randn(3, 2, dtype=torch.float64, requires_grad=True)
    b = torch.randn(3, 2, dtype=torch.float64, requires_grad=True)
    return 0.5, a, b


gradsmith_inputs = {"ConcatScaled": example}
