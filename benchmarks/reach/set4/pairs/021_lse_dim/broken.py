import torch


class LogSumExp(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, dim=-1, keepdim=False):
        out = torch.logsumexp(x, dim, keepdim=True)
        ctx.save_for_backward(x, out)
        ctx.dim, ctx.keepdim = dim, keepdim
        return out if keepdim else out.squeeze(dim)

    @staticmethod
    def backward(ctx, grad):
        x, out = ctx.saved_tensors
        if not ctx.keepdim:
            grad = grad.unsqueeze(-1)
        return grad * (x - out).exp(), None, None


gradsmith_inputs = {"LogSumExp": lambda: (torch.randn(3, 3, requires_grad=True),)}
