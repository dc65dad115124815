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


W = (0.97 * torch.linalg.qr(torch.randn(3, 3, dtype=f64))[0]).requires_grad_()


def ref(x, W):
    z = torch.zeros_like(x)
    for _ in range(3000):
        z = torch.tanh(z @ W.t() + x)
    return z


x = (0.05 * torch.randn(2, 3, dtype=f64)).requires_grad_()
judge(__file__, lambda m, *a: m.FixedPoint.apply(*a), ref, (x, W))
