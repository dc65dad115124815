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


def ref(f):
    out = torch.zeros(7, dtype=f64)
    for i in range(3):
        out = out + torch.nn.functional.pad(f[i], (2 * i, 4 - 2 * i))
    return out


judge(__file__, lambda m, f: torch.stack([m.OverlapAdd.apply(f, 2), m.OverlapAdd.apply(2 * f, 2)], dim=1),
      lambda f: torch.stack([ref(f), ref(2 * f)], dim=1), (R(3, 3),))
