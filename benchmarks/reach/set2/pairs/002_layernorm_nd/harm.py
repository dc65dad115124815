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


def ref(x, w, b):
    return torch.nn.functional.layer_norm(x, (6,), w, b, 1e-5)


judge(__file__, lambda m, *a: m.LayerNormFunction.apply(*a), ref, (R(2, 3, 6), R(6), R(6)))
