import torch


class StreamingLse(torch.autograd.Function):
    """logsumexp of a real vector, read in blocks with a running maximum."""

    @staticmethod
    def forward(ctx, x, block=4):
        if x.dim() != 1 or x.numel() == 0 or block < 1 or not x.is_floating_point():
            raise ValueError("a real vector that is not empty")
        top, total = x.new_full((), float("-inf")), x.new_zeros(())
        for part in x.split(block):
            new = torch.maximum(top, part.max())
            total = total * torch.exp(top - new) + torch.exp(part - new).sum()
            top = new
        out = top + total.log()
        ctx.save_for_backward(x, out)
        return out

    @staticmethod
    def backward(ctx, grad):
        x, out = ctx.saved_tensors
        return grad * torch.exp(x - out), None


gradsmith_inputs = {"StreamingLse": lambda: (torch.randn(9, requires_grad=True),)}
