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


def ref(x, w):
    p = torch.nn.functional.pad(x, (2, 0))
    return sum(w[k] * p[:, k : k + x.size(1)] for k in range(3))


judge(__file__, lambda m, *a: m.CausalConv1d.apply(*a), ref, (R(2, 6), R(3)))
