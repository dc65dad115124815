"""Pairwise squared distances by broadcasting, against the expanded square."""

import torch

CAUSES = ("materialised-broadcast",)


def slow(a, b):
    return ((a[:, None, :] - b[None, :, :]) ** 2).sum(-1)  # <-


def fast(a, b):
    return (a * a).sum(1, keepdim=True) - 2 * a @ b.t() + (b * b).sum(1)


def inputs():
    return torch.randn(128, 64, requires_grad=True), torch.randn(128, 64, requires_grad=True)
