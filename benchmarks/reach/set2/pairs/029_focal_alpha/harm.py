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


t = torch.tensor([1.0, 0, 0, 0], dtype=f64)


def ref(x):
    p = torch.sigmoid((2 * t - 1) * x)
    return -((0.25 * t + 0.75 * (1 - t)) * (1 - p) ** 2 * p.log()).sum()


judge(__file__, lambda m, x: m.BinaryFocalLoss.apply(x, t, 0.25, 2.0), ref, (R(4),))
