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


h = torch.exp(-2j * torch.pi * 1.3 * torch.fft.rfftfreq(9, dtype=f64))
judge(__file__, lambda m, x: m.FourierFilter.apply(x, h),
      lambda x: torch.fft.irfft(torch.fft.rfft(x) * h, n=9), (R(2, 9),))
