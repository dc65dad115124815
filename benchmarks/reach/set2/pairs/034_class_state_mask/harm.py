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


s = torch.tensor([0.9, 0.8, 0.2, 0.3], dtype=f64)


def run(m, x):
    y = m.ThresholdGate.apply(x, s, 0.5)
    return y + m.ThresholdGate.apply(2 * x, s.flip(0), 0.4)


judge(__file__, run, lambda x: x * (s > 0.5) + 2 * x * (s.flip(0) > 0.4), (R(4),))
