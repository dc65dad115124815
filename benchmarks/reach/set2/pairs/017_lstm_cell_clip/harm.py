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


def ref(gates, c, clip):
    i, f, g, o = gates.chunk(4, -1)
    c = (f.sigmoid() * c + i.sigmoid() * g.tanh()).clamp(-clip, clip)
    return o.sigmoid() * c.tanh(), c


judge(__file__, lambda m, *a: m.ClippedLSTMCell.apply(*a), ref, (R(2, 8), T([[9.0, 0.1], [-8.0, 20.0]]), 3.0))
