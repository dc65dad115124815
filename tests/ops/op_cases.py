"""Every op of gs.ops that computes, beside what it stands for in plain PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from gradsmith import ops


@dataclass(frozen=True)
class Case:
    name: str
    ours: Callable[..., Tensor]
    plain: Callable[..., Tensor]
    shapes: tuple[tuple[int, ...], ...]

    def __str__(self) -> str:
        return self.name

    def inputs(self, dtype: torch.dtype = torch.float64, seed: int = 0) -> list[Tensor]:
        torch.manual_seed(seed)
        # Around 1: weights that are not 0, and no pre-activation of a relu at its corner.
        return [(torch.randn(shape, dtype=dtype) * 0.6 + 1).requires_grad_() for shape in self.shapes]


TARGET = torch.tensor([[0, 4, -100], [2, 2, 1]])
CLASSES = torch.tensor([0.5, 1.0, 2.0, 1.5, 0.7], dtype=torch.float64)


def plain_loss(
    softcap: float = 0.0, z_loss: float = 0.0, weight: Tensor | None = None, **options: Any
) -> Callable[..., Tensor]:
    def loss(x: Tensor, w: Tensor, b: Tensor | None = None) -> Tensor:
        z, flat = F.linear(x, w, b).reshape(-1, w.shape[0]), TARGET.reshape(-1)
        z = z if z.dtype is torch.float64 else z.float()
        z = softcap * torch.tanh(z / softcap) if softcap else z
        counted = (flat != -100).to(z.dtype)
        total = F.cross_entropy(z, flat, None if weight is None else weight.to(z.dtype), **options)
        square = z_loss * torch.logsumexp(z, 1).square() * counted if z_loss else torch.zeros_like(counted)
        reduction = options.get("reduction", "mean")
        if reduction == "none":
            return (total + square).reshape(TARGET.shape)
        return total + (square.sum() / counted.sum() if reduction == "mean" else square.sum())

    return loss


def our_loss(**options: Any) -> Callable[..., Tensor]:
    def loss(x: Tensor, w: Tensor, b: Tensor | None = None) -> Tensor:
        classes = options.get("class_weight")
        given = {**options, "class_weight": None if classes is None else classes.to(x.dtype)}
        return ops.linear_cross_entropy(x, w, TARGET, b, **given)

    return loss


_LCE = ((2, 3, 4), (5, 4), (5,))
CASES = [
    Case("rms_norm", lambda x, w: ops.rms_norm(x, 4, w), lambda x, w: F.rms_norm(x, (4,), w), ((2, 3, 4), (4,))),
    Case("rms_norm-plain", lambda x: ops.rms_norm(x, (3, 4)), lambda x: F.rms_norm(x, (3, 4)), ((2, 3, 4),)),
    Case("layer_norm", lambda x, w, b: ops.layer_norm(x, 4, w, b), lambda x, w, b: F.layer_norm(x, (4,), w, b), ((2, 3, 4), (4,), (4,))),
    Case("layer_norm-plain", lambda x: ops.layer_norm(x, (3, 4)), lambda x: F.layer_norm(x, (3, 4)), ((2, 3, 4),)),
    Case("swish", ops.swish, lambda x, b: x * torch.sigmoid(b * x), ((5, 3), ())),
    Case("swish-feature", ops.swish, lambda x, b: x * torch.sigmoid(b * x), ((5, 3), (3,))),
    Case("logsumexp", ops.logsumexp, lambda x: torch.logsumexp(x, -1), ((5, 3),)),
    Case("logsumexp-dim", lambda x: ops.logsumexp(x, 0, True), lambda x: torch.logsumexp(x, 0, True), ((5, 3),)),
    Case("swiglu", ops.swiglu, lambda a, b: F.silu(a) * b, ((5, 3), (5, 3))),
    Case("linear_relu", ops.linear_relu, lambda x, w, b: F.linear(x, w, b).relu(), ((2, 3, 4), (5, 4), (5,))),
    Case("checkpoint", lambda x: ops.checkpoint(torch.tanh, x), torch.tanh, ((5, 3),)),
    Case("checkpoint_sequence", lambda x: ops.checkpoint_sequence([torch.sin, torch.cos, torch.tanh], x), lambda x: x.sin().cos().tanh(), ((5, 3),)),
    Case("cross_entropy", our_loss(chunk=4), plain_loss(), _LCE),
    Case("cross_entropy-no-bias", our_loss(), plain_loss(), _LCE[:2]),
    Case("cross_entropy-everything", our_loss(chunk=4, softcap=3.0, z_loss=0.1, label_smoothing=0.2, class_weight=CLASSES),
         plain_loss(3.0, 0.1, CLASSES, label_smoothing=0.2), _LCE),
    Case("cross_entropy-sum", our_loss(z_loss=0.1, reduction="sum"), plain_loss(z_loss=0.1, reduction="sum"), _LCE),
    Case("cross_entropy-none", our_loss(chunk=4, softcap=3.0, label_smoothing=0.2, class_weight=CLASSES, reduction="none"),
         plain_loss(3.0, 0.0, CLASSES, label_smoothing=0.2, reduction="none"), _LCE),
]  # fmt: skip
