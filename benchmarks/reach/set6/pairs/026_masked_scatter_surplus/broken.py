import torch


class FillMasked(torch.autograd.Function):
    """Like Tensor.masked_scatter: the mask's places take the first values of source."""

    @staticmethod
    def forward(ctx, x, mask, source):
        if mask.dtype != torch.bool or mask.shape != x.shape or source.dim() != 1:
            raise ValueError("mask must be boolean and shaped like x, source a vector")
        if source.numel() < int(mask.sum()):
            raise ValueError("source is too short")
        ctx.save_for_backward(mask)
        ctx.surplus = source.numel() - int(mask.sum())
        return x.masked_scatter(mask, source)

    @staticmethod
    def backward(ctx, grad_output):
        (mask,) = ctx.saved_tensors
        grad_x = grad_output.masked_fill(mask, 0)
        grad_source = grad_output[mask]
        return grad_x, None, grad_source


def example():
    x = torch.arange(4.0, dtype=torch.float64).requires_grad_()
    mask = torch.tensor([True, False, True, False])
    return x, mask, torch.tensor([9.0, 8.0], dtype=torch.float64, requires_grad=True)


gradsmith_inputs = {"FillMasked": example}
