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


k = torch.tensor([[1, 1, 0, 1], [0, 1, 1, 0]]).bool()


def ref(x):
    return torch.stack([torch.zeros(4, dtype=f64).masked_scatter(k[i], torch.log_softmax(x[i][k[i]], 0)) for i in (0, 1)])


judge(__file__, lambda m, x: m.MaskedLogSoftmax.apply(x, k), ref, (R(2, 4),))
