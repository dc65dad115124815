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


def ref(p, t):
    import math
    d = (p - t).abs()
    return torch.where(d < 1.5, 1.5 * torch.log1p(d / 0.5), d - (1.5 - 1.5 * math.log1p(3.0))).mean()


judge(__file__, lambda m, *a: 0.3 * m.WingLoss.apply(*a, 1.5, 0.5), lambda *a: 0.3 * ref(*a), (R(5), R(5)))
