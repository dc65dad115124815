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


def ref(x):
    return torch.nn.functional.avg_pool2d(x, 2, 2, 1, count_include_pad=False)


judge(__file__, lambda m, x: m.AvgPool2d.apply(x, 2, 1), ref, (R(1, 1, 5, 4),))
