import torch


class TopKSum(torch.autograd.Function):
    """The sum of the k largest entries of each row."""

    @staticmethod
    def forward(ctx, x, k=1):
        value, at = x.topk(k, dim=-1)
        ctx.save_for_backward(at)
        ctx.shape = x.shape
        return value.sum(-1)

    @staticmethod
    def backward(ctx, grad):
        (at,) = ctx.saved_tensors
        out = grad.new_zeros(ctx.shape)
        return out.scatter(-1, at, grad.unsqueeze(-1).expand(at.shape).contiguous()), None


gradsmith_inputs = {"TopKSum": lambda: (torch.randn(3, 5, requires_grad=True),)}
