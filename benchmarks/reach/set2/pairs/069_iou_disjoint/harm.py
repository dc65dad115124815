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


a, b = T([[0.0, 0.0, 2.0, 3.0], [1.0, 1.0, 4.0, 2.5]]), T([[2.5, 0.7, 3.5, 2.0], [0.2, 0.4, 3.0, 2.0]])


def ref(a, b):
    i = (torch.minimum(a[:, 2:], b[:, 2:]) - torch.maximum(a[:, :2], b[:, :2])).clamp(min=0).prod(-1)
    return i / ((a[:, 2:] - a[:, :2]).prod(-1) + (b[:, 2:] - b[:, :2]).prod(-1) - i)


judge(__file__, lambda m, *z: m.BoxIoU.apply(*z), ref, (a, b))
