"""Plain forwards whose derived Functions are broken by `benchmarks/repair.py`, with inputs."""

from __future__ import annotations

import torch
import torch.nn.functional as F


def rms_norm(x, weight):
    rstd = torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6)
    return x * rstd * weight


def layer_norm(x, weight, bias):
    mean = x.mean(-1, keepdim=True)
    centred = x - mean
    rstd = torch.rsqrt((centred * centred).mean(-1, keepdim=True) + 1e-5)
    return centred * rstd * weight + bias


def focal_loss(logits, target):
    p = torch.sigmoid(logits)
    return -(target * (1 - p) ** 2 * torch.log(p) + (1 - target) * p**2 * torch.log(1 - p)).mean()


def attention(q, k, v):
    scores = q @ k.mT / q.shape[-1] ** 0.5
    return torch.softmax(scores, -1) @ v


def swiglu(x, gate, up):
    a = x @ gate
    return F.silu(a) * (x @ up)


def cosine(x, y):
    return (x * y).sum(-1) / (x.norm(dim=-1) * y.norm(dim=-1))


def gaussian_nll(mean, log_var, target):
    return 0.5 * (log_var + (target - mean) ** 2 * torch.exp(-log_var)).mean()


def rbf(x, y, gamma):
    distance = ((x[:, None] - y[None]) ** 2).sum(-1)
    return torch.exp(-gamma * distance)


def film(x, scale, shift):
    return torch.tanh(x * (1 + scale) + shift)


def soft_dice(logits, target):
    p = torch.sigmoid(logits)
    return 1 - 2 * (p * target).sum(-1) / (p.sum(-1) + target.sum(-1) + 1.0)


def _n(*shape):
    return torch.randn(shape, dtype=torch.float64, requires_grad=True)


def _p(*shape):
    return (torch.rand(shape, dtype=torch.float64) + 0.2).requires_grad_()


def _t(*shape):
    return torch.rand(shape, dtype=torch.float64)


INPUTS = {
    rms_norm: "(_n(3, 4), _n(4))",
    layer_norm: "(_n(3, 4), _n(4), _n(4))",
    focal_loss: "(_n(5, 3), _t(5, 3))",
    attention: "(_n(2, 5, 4), _n(2, 6, 4), _n(2, 6, 3))",
    swiglu: "(_n(5, 4), _n(4, 3), _n(4, 3))",
    cosine: "(_n(5, 4), _n(5, 4))",
    gaussian_nll: "(_n(5, 3), _n(5, 3), _t(5, 3))",
    rbf: "(_n(5, 3), _n(4, 3), _p())",
    film: "(_n(3, 5, 4), _n(3, 1, 4), _n(3, 1, 4))",
    soft_dice: "(_n(3, 7), _t(3, 7))",
}
DRAWS = {"_n": _n, "_p": _p, "_t": _t}
DRAWS_SOURCE = """

def _n(*shape):
    return torch.randn(shape, dtype=torch.float64, requires_grad=True)


def _p(*shape):
    return (torch.rand(shape, dtype=torch.float64) + 0.2).requires_grad_()


def _t(*shape):
    return torch.rand(shape, dtype=torch.float64)

"""
