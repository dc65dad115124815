"""Power iteration that prints its progress value in every round, against never."""

import torch

CAUSES = ("host-sync",)


def slow(matrix, v):
    history = []
    for _ in range(30):
        v = matrix @ v
        v = v / v.norm()
        history.append((v @ matrix @ v).item())  # <-
    return v


def fast(matrix, v):
    for _ in range(30):
        v = matrix @ v
        v = v / v.norm()
    return v


def inputs():
    return torch.randn(48, 48, requires_grad=True), torch.randn(48)
