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


pix, dep = torch.tensor([2, 0, 2, 2]), torch.tensor([1.0, 2.0, 0.5, 4.0])


def ref(c):
    z = torch.zeros(3, dtype=f64)
    return torch.stack([c[1], z, c[2]])


judge(__file__, lambda m, c: m.ZBufferSplat.apply(c, pix, dep, 3), ref, (R(4, 3),))
