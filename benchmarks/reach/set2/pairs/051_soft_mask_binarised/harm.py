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


k = torch.tensor([0.1, 0.9, 0.0, 0.5], dtype=f64)
judge(__file__, lambda m, *a: m.MaskedMSE.apply(*a, k), lambda p, t: (k * (p - t) ** 2).sum() / k.sum(), (R(4), R(4)))
