"""A gradient penalty that asks for the norm as a Python number in each block, against staying in tensors."""

import torch

CAUSES = ("host-sync",)


def slow(x, scale):
    for _ in range(40):
        norm = float(x.norm())  # <-
        x = x * scale if norm > 1e6 else x + scale
    return x


def fast(x, scale):
    for _ in range(40):
        x = x + scale
    return x


def inputs():
    return torch.randn(64, 64, requires_grad=True), torch.randn(64, requires_grad=True)
