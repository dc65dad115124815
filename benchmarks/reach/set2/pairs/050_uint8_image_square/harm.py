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


im = torch.randint(0, 256, (3, 6), dtype=torch.uint8)
judge(__file__, lambda m, g, c: m.GammaGain.apply(g, c, im),
      lambda g, c: g[:, None] * im.double() + c[:, None] * im.double() ** 2, (R(3), R(3)))
