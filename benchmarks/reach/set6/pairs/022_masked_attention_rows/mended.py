import torch


class MaskedSoftmax(torch.autograd.Function):
    """Softmax over the allowed positions; a row without any gives zeros."""

    @staticmethod
    def forward(ctx, x, allowed):
        if x.is_complex():
            raise ValueError("not for complex input")
        if allowed.shape != x.shape or allowed.dtype != torch.bool:
            raise ValueError("allowed must be a boolean mask of the shape of x")
        s = x.masked_fill(~allowed, float("-inf"))
        lse = torch.logsumexp(s, -1, keepdim=True)
        ctx.save_for_backward(s, lse)
        return torch.exp(s - lse).nan_to_num(nan=0.0)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, g):
        s, lse = ctx.saved_tensors
        p = torch.exp(s - lse).nan_to_num(nan=0.0)
        return p * (g - (p * g).sum(-1, keepdim=True)), None


def example():
    torch.manual_seed(0)
    allowed = torch.tensor([[True, True, False], [True, False, True]])
    return torch.randn(2, 3, dtype=torch.float64, requires_grad=True), allowed


gradsmith_inputs = {"MaskedSoftmax": example}
