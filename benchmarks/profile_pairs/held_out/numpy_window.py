"""A window from NumPy, which is float64, against the same in the precision of the input."""

import numpy as np
import torch

CAUSES = ("accidental-float64",)


def slow(x):
    window = torch.from_numpy(np.hanning(x.shape[-1]))
    y = x * window  # <-
    return torch.tanh(y).mul(y).sum(dim=-1)  # <-


def fast(x):
    window = torch.from_numpy(np.hanning(x.shape[-1])).to(x.dtype)
    y = x * window
    return torch.tanh(y).mul(y).sum(dim=-1)


def inputs():
    return (torch.randn(128, 1024, requires_grad=True),)
