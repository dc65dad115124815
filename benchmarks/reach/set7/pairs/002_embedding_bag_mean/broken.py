import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable


class EmbeddingBagMean(Function):
    """Mean of the rows of `weight` in each bag; `offsets[b]` is the start of bag b in `tokens`."""

    @staticmethod
    def forward(ctx, weight, tokens, offsets):
        if not weight.is_floating_point():
            raise TypeError("weight must be real")
        if offsets.numel() == 0 or int(offsets[0]) != 0 or bool((offsets.diff() < 0).any()):
            raise ValueError("offsets must start at 0 and must not decrease")
        if int(offsets[-1]) > tokens.numel():
            raise ValueError("offsets run past the tokens")
        ends = torch.cat([offsets[1:], offsets.new_tensor([tokens.numel()])])
        count = (ends - offsets).clamp(min=1).to(weight.dtype)
        bag = torch.repeat_interleave(torch.arange(offsets.numel(), device=tokens.device), ends - offsets)
        out = weight.new_zeros(offsets.numel(), weight.size(1))
        out.index_add_(0, bag, weight.index_select(0, tokens))
        ctx.save_for_backward(tokens, offsets.long(), count)
        ctx.num_embeddings = weight.size(0)
        return out / count[:, None]

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_out):
        tokens, offsets, count = ctx.saved_tensors
        start = torch.zeros(tokens.numel() + 1, dtype=torch.long, device=tokens.device)
        start[offsets] = 1
        bag = start.cumsum(0)[:-1] - 1
        per_token = (grad_out / count[:, None]).index_select(0, bag)
        grad_weight = grad_out.new_zeros(ctx.num_embeddings, grad_out.size(1))
        grad_weight.index_add_(0, tokens, per_token)
        return grad_weight, None, None


def _inputs():
    tokens = torch.tensor([1, 4, 2, 0, 4, 3, 3])
    return torch.randn(6, 3, requires_grad=True), tokens, torch.tensor([0, 2, 5])


gradsmith_inputs = {"EmbeddingBagMean": _inputs}
