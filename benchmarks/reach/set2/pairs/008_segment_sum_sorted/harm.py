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


def ref(x, i, n):
    return torch.stack([x[i == k].sum(0) for k in range(n)])


judge(__file__, lambda m, *a: m.segment_sum(*a), ref, (R(5, 2), torch.tensor([2, 0, 1, 0, 2]), 3))
