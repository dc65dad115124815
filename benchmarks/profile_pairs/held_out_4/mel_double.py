"""Filters in float64 that pull a spectrogram up to float64, against filters in the spectrogram's dtype."""

import numpy as np
import torch

CAUSES = ("accidental-float64",)
FILTERS = np.abs(np.random.default_rng(0).normal(size=(80, 129)))


def slow(power):
    filters = torch.from_numpy(FILTERS)  # <-
    return torch.log(power.to(filters.dtype) @ filters.t() + 1e-6)  # <-


def fast(power):
    filters = torch.from_numpy(FILTERS).float()
    return torch.log(power @ filters.t() + 1e-6)


def inputs():
    return (torch.rand(400, 129, requires_grad=True),)
