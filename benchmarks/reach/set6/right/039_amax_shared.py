import torch


class SharedMax(torch.autograd.Function):
    """Maximum over dim (keepdim optional); equal maxima share the gradient evenly, as in torch.amax."""

    @staticmethod
    def forward(ctx, x, dim, keepdim=False):
        if x.dim() == 0:
            raise ValueError("x needs a dimension")
        top = x.amax(dim, keepdim=True)
        ctx.save_for_backward(x, top)
        ctx.dim, ctx.keepdim = dim, keepdim
        return top.clone() if keepdim else top.squeeze(dim)

    @staticmethod
    def backward(ctx, g):
        x, top = ctx.saved_tensors
        if not ctx.keepdim:
            g = g.unsqueeze(ctx.dim)
        winners = x == top
        return winners * (g / winners.sum(ctx.dim, keepdim=True)), None, None


gradsmith_inputs = {"SharedMax": lambda: (torch.randn(3, 4, dtype=torch.float64, requires_grad=True), -1)}
