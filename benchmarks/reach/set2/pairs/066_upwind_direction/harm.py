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


def ref(u, v, dt):
    f = v * torch.where(v > 0, u.roll(1), u)
    return u - dt * (f.roll(-1) - f)


judge(__file__, lambda m, *a: m.UpwindAdvection.apply(*a), ref, (R(5), T([0.5, -0.8, -0.3, 0.9, -1.2]), 0.4))
