"""An RBF kernel through all differences, against squared norms and one product."""

import torch

CAUSES = ("materialised-broadcast",)


def slow(a, b, gamma):
    difference = a.unsqueeze(1) - b.unsqueeze(0)  # <-
    return torch.exp(-gamma * difference.pow(2).sum(dim=-1))  # <-


def fast(a, b, gamma):
    squared = a.pow(2).sum(1)[:, None] + b.pow(2).sum(1)[None] - 2 * a @ b.t()
    return torch.exp(-gamma * squared)


def inputs():
    return torch.randn(160, 32, requires_grad=True), torch.randn(120, 32, requires_grad=True), 0.1
