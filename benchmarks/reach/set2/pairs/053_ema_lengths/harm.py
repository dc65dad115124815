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
    rows = []
    for b, n in enumerate((2, 4)):
        s = 0
        for t in range(n):
            s = 0.8 * s + 0.2 * x[b, t]
        rows.append(s)
    return torch.stack(rows)


judge(__file__, lambda m, x: m.PaddedEMA.apply(x, 0.8, torch.tensor([2, 4])), ref, (R(2, 4, 3),))
