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


def ref(p):
    return torch.stack([p[0], p[1], p[3], p[1], p[2], p[4], p[3], p[4], p[5]]).view(3, 3)


judge(__file__, lambda m, p: m.UnpackSymmetric.apply(p, 3), ref, (R(6),))
