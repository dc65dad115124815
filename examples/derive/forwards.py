"""Twelve well-known operations as plain forwards: `gradsmith derive examples/derive/forwards.py::rms_norm` writes backward.

docs/derived.md shows what comes out for each of them, and what it saves (`python docs/derived.py` writes that page).
"""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor


def swish(x: Tensor, beta: Tensor) -> Tensor:
    return x * torch.sigmoid(beta * x)


def gelu_tanh(x: Tensor) -> Tensor:
    inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)
    return 0.5 * x * (1 + torch.tanh(inner))


def linear(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return x @ weight.T + bias


def softmax(x: Tensor) -> Tensor:
    weights = torch.exp(x - x.amax(-1, keepdim=True))
    return weights / weights.sum(-1, keepdim=True)


def cross_entropy(logits: Tensor, target: Tensor) -> Tensor:
    log_probs = F.log_softmax(logits, dim=-1)
    return -log_probs.gather(-1, target.unsqueeze(-1)).mean()


def layer_norm(x: Tensor, weight: Tensor, bias: Tensor, eps: float = 1e-5) -> Tensor:
    mean = x.mean(-1, keepdim=True)
    centred = x - mean
    std = torch.sqrt((centred * centred).mean(-1, keepdim=True) + eps)
    return centred / std * weight + bias


def rms_norm(x: Tensor, weight: Tensor, eps: float = 1e-6) -> Tensor:
    scale = torch.rsqrt((x * x).mean(-1, keepdim=True) + eps)
    return x * scale * weight


def swiglu(x: Tensor, gate: Tensor) -> Tensor:
    return F.silu(gate) * x


def cosine_similarity(x: Tensor, y: Tensor, eps: float = 1e-8) -> Tensor:
    dot = (x * y).sum(-1)
    norms = x.norm(dim=-1) * y.norm(dim=-1)
    return dot / norms.clamp(min=eps)


def huber_loss(prediction: Tensor, target: Tensor, delta: float = 1.0) -> Tensor:
    error = prediction - target
    small = error.abs() <= delta
    return torch.where(small, 0.5 * error**2, delta * (error.abs() - 0.5 * delta)).mean()


def attention(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    return torch.softmax(scores, dim=-1) @ value


def leaky_integrator(x: Tensor, decay: Tensor) -> Tensor:
    state = torch.zeros_like(x[0])
    states = []
    for t in range(x.shape[0]):
        state = decay * state + (1 - decay) * torch.tanh(x[t])
        states.append(state)
    return torch.stack(states)


def _rows(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, requires_grad=True)


def _inputs() -> dict[str, Any]:
    return {
        "swish": lambda: (_rows(4, 6), torch.tensor(1.5, dtype=torch.float64, requires_grad=True)),
        "gelu_tanh": lambda: (_rows(4, 6),),
        "linear": lambda: (_rows(4, 6), _rows(5, 6), _rows(5)),
        "softmax": lambda: (_rows(4, 6),),
        "cross_entropy": lambda: (_rows(4, 6), torch.tensor([0, 5, 2, 2])),
        "layer_norm": lambda: (_rows(4, 6), _rows(6), _rows(6)),
        "rms_norm": lambda: (_rows(4, 6), _rows(6)),
        "swiglu": lambda: (_rows(4, 6), _rows(4, 6)),
        "cosine_similarity": lambda: (_rows(4, 6), _rows(4, 6)),
        "huber_loss": lambda: (_rows(4, 6), torch.randn(4, 6, dtype=torch.float64)),
        "attention": lambda: (_rows(2, 4, 6), _rows(2, 5, 6), _rows(2, 5, 3)),
        "leaky_integrator": lambda: (
            _rows(5, 3, 2),
            torch.rand(2, dtype=torch.float64).mul(0.5).add(0.3).requires_grad_(),
        ),
    }


gradsmith_inputs = _inputs()
