import torch


class RowMax(torch.autograd.Function):
    """Maximum of every row and where it is (first one at ties)."""

    @staticmethod
    def forward(ctx, x):
        values, index = x.max(-1)
        ctx.save_for_backward(index)
        ctx.mark_non_differentiable(index)
        ctx.width = x.shape[-1]
        return values, index

    @staticmethod
    def backward(ctx, g, _):
        (index,) = ctx.saved_tensors
        out = g.new_zeros(*g.shape, ctx.width)
        return out.scatter(-1, index.unsqueeze(-1), g.unsqueeze(-1))


gradsmith_inputs = {"RowMax": lambda: (torch.randn(4, 6, requires_grad=True),)}
