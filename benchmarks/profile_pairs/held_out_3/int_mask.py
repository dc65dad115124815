"""A long tensor of ones and zeros as a mask, which turns the product into float64 through NumPy, against the input's dtype."""

import numpy as np
import torch

CAUSES = ("accidental-float64",)


def slow(x):
    decay = torch.as_tensor(0.9 ** np.arange(x.shape[1])[::-1].copy())  # <-
    return (torch.exp(-x * x) * decay).cumsum(dim=1)  # <-


def fast(x):
    decay = torch.as_tensor(0.9 ** np.arange(x.shape[1])[::-1].copy(), dtype=x.dtype)
    return (torch.exp(-x * x) * decay).cumsum(dim=1)


def inputs():
    return (torch.randn(256, 256, requires_grad=True),)
