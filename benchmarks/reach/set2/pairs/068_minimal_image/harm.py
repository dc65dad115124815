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


def ref(p):
    i, j = torch.triu_indices(4, 4, 1)
    d = p[i] - p[j]
    d = d - 10 * torch.round(d.detach() / 10)
    return torch.exp(-d.norm(dim=-1) / 1.5).sum()


x = (torch.rand(4, 3, dtype=f64) * 10).requires_grad_()
judge(__file__, lambda m, p: m.PeriodicPairEnergy.apply(p, 10.0, 1.5), ref, (x,))
