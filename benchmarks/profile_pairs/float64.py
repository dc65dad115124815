"""A window made by NumPy is float64, and so is everything after it."""

import numpy as np
import torch

CAUSES = ("accidental-float64",)
WINDOW = torch.from_numpy(np.hanning(512))
NARROW = WINDOW.float()


def slow(x):
    y = x * WINDOW  # <-
    return torch.tanh(y * 0.5) * y


def fast(x):
    y = x * NARROW
    return torch.tanh(y * 0.5) * y


def inputs():
    return (torch.randn(256, 512, requires_grad=True),)
