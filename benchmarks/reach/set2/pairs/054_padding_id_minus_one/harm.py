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


i = torch.tensor([[0, 1, -1], [2, -1, -1]])
judge(__file__, lambda m, t: m.token_bag(t, i), lambda t: torch.stack([t[0] + t[1], t[2]]), (R(4, 3),))
