import torch


class OrderedAverage(torch.autograd.Function):
    """Sum of the descending last dim of x times the weights (C,)."""

    @staticmethod
    def forward(ctx, x, weights):
        if weights.shape != x.shape[-1:] or x.dim() < 1 or weights.is_complex():
            raise ValueError("one weight for each rank")
        v, order = x.sort(-1, descending=True)
        ctx.save_for_backward(x, weights, order)
        return (v * weights).sum(-1)

    @staticmethod
    def backward(ctx, grad):
        x, weights, order = ctx.saved_tensors
        g = grad.unsqueeze(-1)
        rank = order.argsort(-1)
        return g * weights[rank], (g * x.gather(-1, order)).sum_to_size(weights.shape)


gradsmith_inputs = {"OrderedAverage": lambda: (torch.randn(3, 4, requires_grad=True), torch.rand(4, requires_grad=True))}
