"""repeat before a product, against broadcasting."""

import torch

CAUSES = ("materialised-broadcast",)


def slow(x, gain):
    return x * gain.unsqueeze(0).repeat(x.shape[0], 1, 1)  # <-


def fast(x, gain):
    return x * gain


def inputs():
    return torch.randn(32, 128, 64, requires_grad=True), torch.randn(128, 64, requires_grad=True)
