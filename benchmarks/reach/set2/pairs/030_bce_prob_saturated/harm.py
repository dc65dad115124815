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


t = torch.tensor([0.0, 1.0, 1.0], dtype=f64)
judge(__file__, lambda m, p: m.ProbBCE.apply(p, t), lambda p: -((1 - p[:1]).log().sum() + p[1:].log().sum()) / 3,
      (T([0.0, 1.0, 0.4]),))
