"""Sums per class with a boolean index for each class, against index_add."""

import torch

CAUSES = ("element-loop", "host-sync")


def slow(features, labels, centres):
    sums = []
    for c in range(centres.shape[0]):  # <-
        mask = labels == c
        sums.append(features[mask].sum(dim=0) - centres[c])  # <-
    return torch.stack(sums)


def fast(features, labels, centres):
    sums = torch.zeros_like(centres).index_add(0, labels, features)
    return sums - centres


def inputs():
    return (
        torch.randn(512, 16, requires_grad=True),
        torch.arange(512) % 100,
        torch.randn(100, 16, requires_grad=True),
    )
