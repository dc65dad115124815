import math

import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable


class CausalAttention(Function):
    """Attention of the last Lq positions to Lk >= Lq keys; probabilities are computed again in backward."""

    @staticmethod
    def _probs(q, k, offset):
        scores = q @ k.mT / math.sqrt(q.size(-1))
        keep = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).tril(offset)
        return scores.masked_fill(~keep, float("-inf")).softmax(-1)

    @staticmethod
    def forward(ctx, q, k, v):
        if q.is_complex() or k.is_complex() or v.is_complex():
            raise TypeError("real tensors expected")
        if k.size(-2) < q.size(-2) or k.shape[:-1] != v.shape[:-1] or q.shape[:-2] != k.shape[:-2]:
            raise ValueError("shapes of q, k and v do not fit")
        p = CausalAttention._probs(q, k, k.size(-2) - q.size(-2))
        ctx.save_for_backward(q, k, v)
        return p @ v

    @staticmethod
    @once_differentiable
    def backward(ctx, do):
        q, k, v = ctx.saved_tensors
        p = CausalAttention._probs(q, k, k.size(-2) - q.size(-2))
        dv = p.mT @ do
        dp = do @ v.mT
        ds = p * (dp - (dp * p).sum(-1, keepdim=True)) / math.sqrt(q.size(-1))
        return ds @ k, ds.mT @ q, dv


gradsmith_inputs = {"CausalAttention": lambda: tuple(torch.randn(2, 5, 4, requires_grad=True) for _ in range(3))}
