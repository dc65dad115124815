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


x = torch.randn(4, 3, dtype=f64).t().requires_grad_()
judge(__file__, lambda m, x: m.PickFlat.apply(x, torch.tensor([0, 5, 7])), lambda x: x.reshape(-1)[[0, 5, 7]], (x,))
