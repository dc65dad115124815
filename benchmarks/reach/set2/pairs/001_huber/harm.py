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


def ref(p, t, d):
    return torch.nn.functional.huber_loss(p, t, delta=d, reduction="sum")


judge(__file__, lambda m, *a: m.HuberLoss.apply(*a), ref, (T([0.2, 3.0, -5.0]), torch.zeros(3, dtype=f64), 2.5))
