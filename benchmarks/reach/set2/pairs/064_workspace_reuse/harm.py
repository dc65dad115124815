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


def twice(f, x, y, U, V):
    return f(x, y, U, V) + f(x, 3 * y.flip(0), U, V)


judge(__file__, lambda m, *a: twice(m.FactorizedBilinear.apply, *a),
      lambda *a: twice(lambda x, y, U, V: ((x @ U) * (y @ V)).sum(-1), *a), (R(3, 2), R(3, 4), R(2, 2), R(4, 2)))
