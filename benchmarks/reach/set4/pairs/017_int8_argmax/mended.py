import torch


class RowMax(torch.autograd.Function):
    """The largest entry of each row."""

    @staticmethod
    def forward(ctx, x):
        value, at = x.max(-1)
        ctx.save_for_backward(at)
        ctx.shape = x.shape
        return value

    @staticmethod
    def backward(ctx, grad):
        (at,) = ctx.saved_tensors
        out = grad.new_zeros(ctx.shape)
        columns = torch.arange(ctx.shape[-1])
        return torch.where(columns == at.unsqueeze(-1), grad.unsqueeze(-1), out)


gradsmith_inputs = {"RowMax": lambda: (torch.randn(3, 6, requires_grad=True),)}
