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


k = torch.tensor([[1, 0, 1], [0, 0, 1]], dtype=torch.uint8)
judge(__file__, lambda m, a, b: m.masked_blend(a, b, k), lambda a, b: torch.where(k.bool(), a, b), (R(2, 3), R(2, 3)))
