"""Fifteen forwards of kinds that people put into a custom Function, with inputs; written before the first run of `derive.py own`."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F


def masked_focal_loss(logits, target, mask, gamma=2.0, alpha=0.25):
    ce = F.binary_cross_entropy_with_logits(logits, target, reduction="none")
    p = torch.sigmoid(logits)
    p_t = p * target + (1 - p) * (1 - target)
    weight = alpha * target + (1 - alpha) * (1 - target)
    loss = weight * ce * (1 - p_t) ** gamma
    return (loss * mask).sum() / mask.sum().clamp(min=1)


def group_norm(x, weight, bias, groups, eps=1e-5):
    b, c, h, w = x.shape
    grouped = x.reshape(b, groups, -1)
    mean = grouped.mean(-1, keepdim=True)
    var = grouped.var(-1, unbiased=False, keepdim=True)
    normal = ((grouped - mean) / torch.sqrt(var + eps)).reshape(b, c, h, w)
    return normal * weight[None, :, None, None] + bias[None, :, None, None]


def alibi_attention(q, k, v, slopes):
    length = q.shape[-2]
    scores = torch.einsum("bhid,bhjd->bhij", q, k) / math.sqrt(q.shape[-1])
    position = torch.arange(length, device=q.device)
    distance = (position[None, :] - position[:, None]).to(q.dtype)
    scores = scores + slopes[:, None, None] * distance
    causal = torch.triu(torch.ones(length, length, dtype=torch.bool, device=q.device), diagonal=1)
    scores = scores.masked_fill(causal, float("-inf"))
    return torch.einsum("bhij,bhjd->bhid", scores.softmax(-1), v)


def rope(x, base=10000.0):
    length, dim = x.shape[-2], x.shape[-1]
    frequency = base ** (-torch.arange(0, dim, 2, device=x.device, dtype=x.dtype) / dim)
    angle = torch.arange(length, device=x.device, dtype=x.dtype)[:, None] * frequency
    cos, sin = angle.cos(), angle.sin()
    even, odd = x[..., 0::2], x[..., 1::2]
    return torch.stack([even * cos - odd * sin, even * sin + odd * cos], dim=-1).flatten(-2)


def fake_quantise(x, scale, zero_point, low, high):
    q = x / scale + zero_point
    rounded = q + (q.round() - q).detach()
    return (rounded.clamp(low, high) - zero_point) * scale


def segment_softmax(src, index, segments):
    shape = (segments, src.shape[1])
    expanded = index[:, None].expand_as(src)
    top = src.new_full(shape, float("-inf")).scatter_reduce(0, expanded, src.detach(), "amax", include_self=False)
    out = (src - top[index]).exp()
    total = torch.zeros(shape, dtype=src.dtype, device=src.device).index_add_(0, index, out)
    return out / (total[index] + 1e-16)


def render(sigma, rgb, delta):
    alpha = 1 - torch.exp(-F.relu(sigma) * delta)
    ones = torch.ones_like(alpha[:, :1])
    transmittance = torch.cumprod(torch.cat([ones, 1 - alpha + 1e-10], dim=1), dim=1)[:, :-1]
    weights = alpha * transmittance
    return (weights[..., None] * rgb).sum(dim=1), weights.sum(dim=1)


def fft_conv(x, kernel):
    length = x.shape[-1]
    n = 2 * length
    spectrum = torch.fft.rfft(x, n=n) * torch.fft.rfft(kernel, n=n)
    return torch.fft.irfft(spectrum, n=n)[..., :length]


def bilinear(x, y, weight, bias):
    return torch.tanh(torch.einsum("bi,oij,bj->bo", x, weight, y) + bias)


def sample_image(image, points):
    _, h, w = image.shape
    x, y = points[:, 0], points[:, 1]
    x0, y0 = x.floor().long().clamp(0, w - 2), y.floor().long().clamp(0, h - 2)
    fx, fy = x - x0, y - y0
    top = image[:, y0, x0] * (1 - fx) + image[:, y0, x0 + 1] * fx
    bottom = image[:, y0 + 1, x0] * (1 - fx) + image[:, y0 + 1, x0 + 1] * fx
    return (top * (1 - fy) + bottom * fy).t()


def lstm(x, h, c, w_x, w_h, bias):
    outputs = []
    for t in range(x.shape[0]):
        gates = x[t] @ w_x.t() + h @ w_h.t() + bias
        i, f, g, o = gates.chunk(4, dim=-1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        h = torch.sigmoid(o) * torch.tanh(c)
        outputs.append(h)
    return torch.stack(outputs), c


def mixture_nll(logits, mean, log_sigma, target):
    log_weight = F.log_softmax(logits, dim=-1)
    z = (target[:, None] - mean) * torch.exp(-log_sigma)
    log_p = -0.5 * z * z - log_sigma - 0.5 * math.log(2 * math.pi)
    return -torch.logsumexp(log_weight + log_p, dim=-1).mean()


def contrastive(features, labels, temperature=0.1):
    z = F.normalize(features, dim=1)
    similarity = z @ z.t() / temperature
    itself = torch.eye(len(z), dtype=torch.bool, device=z.device)
    similarity = similarity.masked_fill(itself, -1e9)
    log_p = similarity - similarity.logsumexp(dim=1, keepdim=True)
    positive = (labels[:, None] == labels[None, :]) & ~itself
    return -(log_p * positive).sum(1).div(positive.sum(1).clamp(min=1)).mean()


def soft_argmax(heatmap, beta=10.0):
    b, k, h, w = heatmap.shape
    p = torch.softmax(beta * heatmap.view(b, k, -1), dim=-1).view(b, k, h, w)
    xs = torch.linspace(-1, 1, w, dtype=heatmap.dtype, device=heatmap.device)
    ys = torch.linspace(-1, 1, h, dtype=heatmap.dtype, device=heatmap.device)
    return torch.stack([(p.sum(2) * xs).sum(-1), (p.sum(3) * ys).sum(-1)], dim=-1)


def selective_scan(u, delta, a, b, c, d):
    delta = F.softplus(delta)
    state = torch.zeros(u.shape[0], a.shape[0], a.shape[1], dtype=u.dtype, device=u.device)
    ys = []
    for t in range(u.shape[1]):
        decay = torch.exp(delta[:, t, :, None] * a)
        state = decay * state + delta[:, t, :, None] * b[:, t, None, :] * u[:, t, :, None]
        ys.append((state * c[:, t, None, :]).sum(-1) + d * u[:, t])
    return torch.stack(ys, dim=1)


def n(*shape: int) -> torch.Tensor:
    return torch.randn(shape, dtype=torch.float64, requires_grad=True)


def p(*shape: int) -> torch.Tensor:
    return (torch.rand(shape, dtype=torch.float64) + 0.2).requires_grad_()


def t(*shape: int) -> torch.Tensor:
    return torch.rand(shape, dtype=torch.float64)


INPUTS: dict[Any, Any] = {
    masked_focal_loss: lambda: (n(4, 5), t(4, 5).round(), t(4, 5).round()),
    group_norm: lambda: (n(2, 6, 3, 4), n(6), n(6), 3),
    alibi_attention: lambda: (n(2, 3, 5, 4), n(2, 3, 5, 4), n(2, 3, 5, 4), t(3)),
    rope: lambda: (n(2, 5, 6),),
    fake_quantise: lambda: (n(4, 5), p(), torch.tensor(3.0, dtype=torch.float64), 0, 15),
    segment_softmax: lambda: (n(7, 3), torch.tensor([0, 0, 1, 3, 3, 3, 1]), 4),
    render: lambda: (n(3, 5), p(3, 5, 3), t(3, 5) + 0.1),
    fft_conv: lambda: (n(2, 3, 8), n(3, 8)),
    bilinear: lambda: (n(5, 3), n(5, 4), n(2, 3, 4), n(2)),
    sample_image: lambda: (n(3, 6, 7), (4 * torch.rand(5, 2, dtype=torch.float64) + 0.3).requires_grad_()),
    lstm: lambda: (n(6, 2, 3), n(2, 4), n(2, 4), n(16, 3), n(16, 4), n(16)),
    mixture_nll: lambda: (n(5, 3), n(5, 3), n(5, 3), torch.randn(5, dtype=torch.float64)),
    contrastive: lambda: (n(6, 4), torch.tensor([0, 1, 0, 2, 1, 0])),
    soft_argmax: lambda: (n(2, 3, 4, 5),),
    selective_scan: lambda: (n(2, 6, 3), n(2, 6, 3), n(3, 4), n(2, 6, 4), n(2, 6, 4), n(3)),
}

# The same at sizes where time and memory count: 1e5 elements or more in the largest input or intermediate.
LARGE: dict[Any, Any] = {
    masked_focal_loss: lambda: (n(512, 512), t(512, 512).round(), t(512, 512).round()),
    group_norm: lambda: (n(8, 32, 32, 32), n(32), n(32), 8),
    alibi_attention: lambda: (n(4, 4, 128, 32), n(4, 4, 128, 32), n(4, 4, 128, 32), t(4)),
    rope: lambda: (n(8, 256, 128),),
    fake_quantise: lambda: (n(512, 512), p(), torch.tensor(3.0, dtype=torch.float64), 0, 15),
    segment_softmax: lambda: (n(8192, 32), torch.randint(0, 500, (8192,)), 500),
    render: lambda: (n(2048, 64), p(2048, 64, 3), t(2048, 64) + 0.1),
    bilinear: lambda: (n(256, 64), n(256, 64), n(32, 64, 64), n(32)),
    sample_image: lambda: (n(16, 128, 128), (100 * torch.rand(20000, 2, dtype=torch.float64) + 0.3).requires_grad_()),
    lstm: lambda: (n(32, 64, 64), n(64, 128), n(64, 128), n(512, 64), n(512, 128), n(512)),
    mixture_nll: lambda: (n(16384, 16), n(16384, 16), n(16384, 16), torch.randn(16384, dtype=torch.float64)),
    contrastive: lambda: (n(512, 128), torch.randint(0, 10, (512,))),
    soft_argmax: lambda: (n(8, 16, 64, 64),),
    selective_scan: lambda: (n(8, 64, 64), n(8, 64, 64), n(64, 8), n(8, 64, 8), n(8, 64, 8), n(64)),
}
