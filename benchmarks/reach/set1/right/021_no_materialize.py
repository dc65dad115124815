import torch


class MeanAndVar(torch.autograd.Function):
    """Mean and biased variance over the last dim."""

    @staticmethod
    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(x)
        mean = x.mean(-1)
        return mean, (x - mean.unsqueeze(-1)).square().mean(-1)

    @staticmethod
    def backward(ctx, gm, gv):
        (x,) = ctx.saved_tensors
        n = x.shape[-1]
        grad = None
        if gm is not None:
            grad = (gm / n).unsqueeze(-1).expand_as(x)
        if gv is not None:
            part = gv.unsqueeze(-1) * 2 / n * (x - x.mean(-1, keepdim=True))
            grad = part if grad is None else grad + part
        return grad


gradsmith_inputs = {"MeanAndVar": lambda: (torch.randn(3, 6, requires_grad=True),)}
