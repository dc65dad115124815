"""Functions of torch that the reader takes apart: their derivative follows from the operations they are made of.

Each has the signature of the function of torch whose name it has.
"""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F


def _reduced(loss: Any, reduction: Any) -> Any:
    if reduction in ("mean", 1):
        return loss.mean()
    return loss.sum() if reduction in ("sum", 2) else loss


def mse_loss(input, target, size_average=None, reduce=None, reduction="mean", weight=None):  # type: ignore
    loss = (input - target) ** 2
    return _reduced(loss if weight is None else loss * weight, reduction)


def l1_loss(input, target, size_average=None, reduce=None, reduction="mean", weight=None):  # type: ignore
    return _reduced(torch.abs(input - target), reduction)


def smooth_l1_loss(input, target, size_average=None, reduce=None, reduction="mean", beta=1.0):  # type: ignore
    gap = torch.abs(input - target)
    if beta == 0:
        return _reduced(gap, reduction)
    return _reduced(torch.where(gap < beta, 0.5 * gap**2 / beta, gap - 0.5 * beta), reduction)


def huber_loss(input, target, reduction="mean", delta=1.0, weight=None):  # type: ignore
    gap = torch.abs(input - target)
    return _reduced(torch.where(gap < delta, 0.5 * gap**2, delta * (gap - 0.5 * delta)), reduction)


def kl_div(input, target, size_average=None, reduce=None, reduction="mean", log_target=False):  # type: ignore
    if log_target:
        loss = torch.exp(target) * (target - input)
    else:
        loss = torch.xlogy(target, target) - target * input
    return loss.sum() / input.shape[0] if reduction == "batchmean" else _reduced(loss, reduction)


def soft_margin_loss(input, target, size_average=None, reduce=None, reduction="mean"):  # type: ignore
    return _reduced(F.softplus(-target * input), reduction)


def binary_cross_entropy(input, target, weight=None, size_average=None, reduce=None, reduction="mean"):  # type: ignore
    loss = -(
        target * torch.clamp(torch.log(input), min=-100) + (1 - target) * torch.clamp(torch.log1p(-input), min=-100)
    )
    return _reduced(loss if weight is None else loss * weight, reduction)


def binary_cross_entropy_with_logits(  # type: ignore
    input, target, weight=None, size_average=None, reduce=None, reduction="mean", pos_weight=None
):
    if pos_weight is None:
        loss = (1 - target) * input - F.logsigmoid(input)
    else:
        loss = (1 - target) * input - (1 + (pos_weight - 1) * target) * F.logsigmoid(input)
    return _reduced(loss if weight is None else loss * weight, reduction)


def nll_loss(  # type: ignore
    input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean"
):
    kept = target != ignore_index
    index = torch.where(kept, target, 0)
    if input.dim() == 1:
        return -input.gather(0, index.unsqueeze(0)).squeeze(0)
    factor = kept.to(input.dtype)
    if weight is not None:
        factor = factor * weight[index]
    loss = -input.gather(1, index.unsqueeze(1)).squeeze(1) * factor
    return loss.sum() / factor.sum() if reduction in ("mean", 1) else _reduced(loss, reduction)


def cross_entropy(  # type: ignore
    input,
    target,
    weight=None,
    size_average=None,
    ignore_index=-100,
    reduce=None,
    reduction="mean",
    label_smoothing=0.0,
):
    dim = 0 if input.dim() == 1 else 1
    logp = torch.log_softmax(input, dim)
    if target.is_floating_point():
        if label_smoothing > 0:
            target = target * (1 - label_smoothing) + label_smoothing / input.shape[dim]
        loss = -(logp * target if weight is None else logp * target * weight).sum(dim)
        if reduction != "mean":
            return _reduced(loss, reduction)
        return loss.sum() / input.shape[0] if input.dim() == 2 else loss.mean()
    if label_smoothing > 0 and weight is None and input.dim() == 2:
        kept = (target != ignore_index).to(logp.dtype)
        index = torch.where(target != ignore_index, target, 0)
        picked = logp.gather(1, index.unsqueeze(1)).squeeze(1)
        loss = -kept * ((1 - label_smoothing) * picked + label_smoothing * logp.mean(1))
        return loss.sum() / kept.sum() if reduction == "mean" else _reduced(loss, reduction)
    if label_smoothing > 0:
        return torch.special.multigammaln(logp, 1)  # no rule: refused
    return nll_loss(logp, target, weight, None, ignore_index, None, reduction)


def cosine_similarity(x1, x2, dim=1, eps=1e-8):  # type: ignore
    dot = (x1 * x2).sum(dim)
    return dot / (torch.clamp(_length(x1, dim), min=eps) * torch.clamp(_length(x2, dim), min=eps))


def _length(x: Any, dim: Any) -> Any:
    return torch.linalg.vector_norm(x, 2, dim)


def pairwise_distance(x1, x2, p=2.0, eps=1e-6, keepdim=False):  # type: ignore
    return torch.linalg.vector_norm(x1 - x2 + eps, p, -1, keepdim)


def cosine_embedding_loss(input1, input2, target, margin=0, size_average=None, reduce=None, reduction="mean"):  # type: ignore
    cos = cosine_similarity(input1, input2, -1, 0.0)
    loss = torch.where(target == 1, 1 - cos, torch.where(target == -1, torch.clamp(cos - margin, min=0), 0.0))
    return _reduced(loss, reduction)


def margin_ranking_loss(input1, input2, target, margin=0, size_average=None, reduce=None, reduction="mean"):  # type: ignore
    return _reduced(torch.clamp(-target * (input1 - input2) + margin, min=0), reduction)


def hinge_embedding_loss(input, target, margin=1.0, size_average=None, reduce=None, reduction="mean"):  # type: ignore
    apart = torch.where(target == 1, 0.0, torch.clamp(margin - input, min=0))
    return _reduced(apart + torch.where(target == -1, 0.0, input), reduction)


def triplet_margin_loss(  # type: ignore
    anchor,
    positive,
    negative,
    margin=1.0,
    p=2,
    eps=1e-6,
    swap=False,
    size_average=None,
    reduce=None,
    reduction="mean",
):
    near = pairwise_distance(anchor, positive, p, eps)
    far = pairwise_distance(anchor, negative, p, eps)
    if swap:
        far = torch.minimum(far, pairwise_distance(positive, negative, p, eps))
    return _reduced(torch.clamp(near - far + margin, min=0), reduction)


def poisson_nll_loss(  # type: ignore
    input, target, log_input=True, full=False, size_average=None, eps=1e-8, reduce=None, reduction="mean"
):
    loss = torch.exp(input) - target * input if log_input else input - target * torch.log(input + eps)
    if full:
        stirling = target * torch.log(target) - target + 0.5 * torch.log(2 * math.pi * target)
        loss = loss + torch.where(target > 1, stirling, 0.0)
    return _reduced(loss, reduction)


def glu(input, dim=-1):  # type: ignore
    a, b = input.chunk(2, dim)
    return a * torch.sigmoid(b)


def layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-5, cudnn_enable=True):  # type: ignore
    dims = tuple(range(-len(normalized_shape), 0))
    centred = input - input.mean(dims, keepdim=True)
    rstd = torch.rsqrt((centred**2).mean(dims, keepdim=True) + eps)
    out = centred * rstd
    if weight is not None:
        out = out * weight
    return out if bias is None else out + bias


def rms_norm(input, normalized_shape, weight=None, eps=None):  # type: ignore
    dims = tuple(range(-len(normalized_shape), 0))
    floor = torch.finfo(input.dtype).eps if eps is None else eps
    out = input * torch.rsqrt((input**2).mean(dims, keepdim=True) + floor)
    return out if weight is None else out * weight


def group_norm(input, num_groups, weight=None, bias=None, eps=1e-5, cudnn_enabled=True):  # type: ignore
    grouped = input.reshape(input.shape[0], num_groups, -1)
    centred = grouped - grouped.mean(-1, keepdim=True)
    rstd = torch.rsqrt((centred**2).mean(-1, keepdim=True) + eps)
    out = (centred * rstd).reshape(input.shape)
    inner = (-1,) + (1,) * (input.dim() - 2)
    if weight is not None:
        out = out * weight.reshape(inner)
    return out if bias is None else out + bias.reshape(inner)


def scaled_dot_product_attention(  # type: ignore
    query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False
):
    if dropout_p > 0 or enable_gqa:
        return F.dropout(query, dropout_p)  # refused: it draws
    factor = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    scores = query @ key.transpose(-2, -1) * factor
    if is_causal:
        later = torch.ones(query.shape[-2], key.shape[-2], dtype=torch.bool, device=query.device)
        scores = scores.masked_fill(torch.triu(later, 1), float("-inf"))
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        scores = scores.masked_fill(~attn_mask, float("-inf"))
    elif attn_mask is not None:
        scores = scores + attn_mask
    return torch.softmax(scores, -1) @ value


def prelu(input, weight):  # type: ignore
    if weight.dim() > 0 and input.dim() > 1 and weight.shape[0] > 1:
        weight = weight.reshape((-1,) + (1,) * (input.dim() - 2))
    return torch.where(input > 0, input, weight * input)


def hstack(tensors):  # type: ignore
    return torch.cat(tuple(tensors), 0 if tensors[0].dim() == 1 else 1)


def vstack(tensors):  # type: ignore
    return torch.cat(tuple(t.unsqueeze(0) if t.dim() == 1 else t for t in tensors), 0)


def chain_matmul(*matrices):  # type: ignore
    out = matrices[0]
    for matrix in matrices[1:]:
        out = out @ matrix
    return out


def meshgrid(*tensors, indexing=None):  # type: ignore
    tensors = tuple(tensors[0]) if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)) else tensors
    if indexing == "xy" and len(tensors) == 2:
        a, b = tensors
        return a[None, :].expand(b.shape[0], a.shape[0]), b[:, None].expand(b.shape[0], a.shape[0])
    sizes = tuple(t.shape[0] for t in tensors)
    shapes = [tuple(-1 if i == k else 1 for i in range(len(tensors))) for k in range(len(tensors))]
    return tuple(t.reshape(s).expand(sizes) for t, s in zip(tensors, shapes))


def std_mean(input, dim=None, unbiased=True, keepdim=False, correction=None):  # type: ignore
    ddof = int(unbiased) if correction is None else correction
    return input.std(dim, correction=ddof, keepdim=keepdim), input.mean(dim, keepdim=keepdim)


def var_mean(input, dim=None, unbiased=True, keepdim=False, correction=None):  # type: ignore
    ddof = int(unbiased) if correction is None else correction
    return input.var(dim, correction=ddof, keepdim=keepdim), input.mean(dim, keepdim=keepdim)


def cdist(x1, x2, p=2.0, compute_mode=None):  # type: ignore
    return torch.linalg.vector_norm(x1.unsqueeze(-2) - x2.unsqueeze(-3), p, -1)


def tensordot(a, b, dims=2):  # type: ignore
    if not isinstance(dims, int):
        return torch.special.multigammaln(a, 1)  # no rule: refused
    left, right = a.shape[: a.dim() - dims], b.shape[dims:]
    rows = a.reshape((*left, -1)).flatten(0, -2) if len(left) > 1 else a.reshape((*left, -1))
    return (rows @ b.reshape((-1, *right)).flatten(1)).reshape((*left, *right))


def broadcast_tensors(*tensors):  # type: ignore
    tensors = tuple(tensors[0]) if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)) else tensors
    shape = torch.broadcast_shapes(*(t.shape for t in tensors))
    return tuple(t.expand(shape) for t in tensors)


def stack_begun(tensors, dim=0):  # type: ignore
    """Of a list that a loop has appended to, what it held before comes first."""
    return torch.cat((torch.stack(tensors.begun, dim), torch.stack(tensors.alone, dim)), dim)


def cat_begun(tensors, dim=0):  # type: ignore
    return torch.cat((*tensors.begun, torch.cat(tensors.alone, dim)), dim)
