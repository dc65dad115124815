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
    f = 1.0 / 10000 ** (torch.arange(0, 4, 2, dtype=f64) / 4)
    w = torch.arange(7, 10, dtype=f64)[:, None] * f
    z = torch.complex(x[..., :2], x[..., 2:]) * torch.polar(torch.ones_like(w), w)
    return torch.cat([z.real, z.imag], -1)


judge(__file__, lambda m, x: m.RotaryEmbedding.apply(x, 7), ref, (R(2, 3, 4),))
