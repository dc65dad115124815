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


t = torch.randn(4, 5, dtype=f64)


def ref(s):
    p = torch.softmax(t / 2, -1)
    return 4 * (p * (p.log() - torch.log_softmax(s / 2, -1))).sum(-1).mean()


judge(__file__, lambda m, s: m.DistillKL.apply(s, t, 2.0), ref, (R(4, 5),))
