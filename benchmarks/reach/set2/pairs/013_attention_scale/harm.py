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


def ref(q, k, v):
    return torch.softmax(q @ k.mT, -1) @ v


judge(__file__, lambda m, *a: m.DotProductAttention.apply(*a, 1.0), ref, (R(1, 3, 4), R(1, 3, 4), R(1, 3, 4)))
