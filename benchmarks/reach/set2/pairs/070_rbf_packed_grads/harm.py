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


judge(__file__, lambda m, *a: m.RBFKernel.apply(*a), lambda x, z, g: torch.exp(-(g * (x - z) ** 2).sum(-1)),
      (R(4, 2), torch.randn(4, 2, dtype=f64), T([0.5, 0.8])))
