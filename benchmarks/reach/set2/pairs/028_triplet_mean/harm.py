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


def ref(a, p, n):
    return ((a - p).square().sum(-1) - (a - n).square().sum(-1) + 0.1).clamp(min=0).mean()


judge(__file__, lambda m, *a: m.TripletMargin.apply(*a, 0.1), ref, (R(6, 2), R(6, 2), R(6, 2)))
