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
    t = torch.arange(5)
    lag = (t[:, None] - t[None]).to(f64)
    return x @ torch.where(lag > 0, 0.9**lag, torch.zeros((), dtype=f64)).t()


judge(__file__, lambda m, x: m.DiscountedCumsum.apply(x, 0.9, True), ref, (R(2, 5),))
