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


mu, v = torch.randn(3, dtype=f64), torch.rand(3, dtype=f64) + 0.5
judge(__file__, lambda m, x: m.BatchNormAct.apply(x, mu, v, False), lambda x: (x - mu) / (v + 1e-5).sqrt(), (R(4, 3),))
