import pathlib
import sys

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from harmlib import judge  # noqa: E402

torch.manual_seed(0)
f64 = torch.float64


def R(*shape):
    return torch.randn(*shape, dtype=f64).requires_grad_()


def T(*values):
    return torch.tensor(*values, dtype=f64, requires_grad=True)


def ref(x, t, w):
    return (torch.nn.functional.binary_cross_entropy_with_logits(x, t, reduction="none") * w).sum() / w.sum()


judge(__file__, lambda m, *a: m.WeightedBCEWithLogits.apply(*a), ref,
      (R(4), torch.tensor([1.0, 0, 1, 0], dtype=f64), torch.tensor([3.0, 0.5, 2, 4], dtype=f64)))
