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


def ref(x):
    return torch.cosh(1.5 * x).log().sum() / 1.5 + torch.tanh(1.5 * x).square().sum()


judge(__file__, lambda m, x: m.LogCoshPenalty(1.5)(x), ref, (R(4),))
