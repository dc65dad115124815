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


a, b, c = (torch.randn(3, dtype=torch.complex128).requires_grad_() for _ in range(3))
judge(__file__, lambda m, *a: m.ElementwiseProduct.apply(*a), lambda a, b, c: a * b + c, (a, b, c))
