"""A frequency table made in float64 by torch.tensor of NumPy values, against float32 as the input is."""

import numpy as np
import torch

CAUSES = ("accidental-float64",)


def slow(t):
    frequencies = torch.tensor(np.geomspace(0.1, 10.0, 64))  # <-
    angles = t[:, :, None] * frequencies  # <-
    return torch.cat([torch.sin(angles), torch.cos(angles)], dim=-1)  # <-


def fast(t):
    frequencies = torch.tensor(np.geomspace(0.1, 10.0, 64), dtype=t.dtype)
    angles = t[:, :, None] * frequencies
    return torch.cat([torch.sin(angles), torch.cos(angles)], dim=-1)


def inputs():
    return (torch.randn(16, 64, requires_grad=True),)
