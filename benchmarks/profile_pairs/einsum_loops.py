"""A batched bilinear form written as loops, against einsum."""

import torch

CAUSES = ("element-loop",)


def slow(x, w, y):
    rows = []
    for b in range(x.shape[0]):  # <-
        rows.append(torch.dot(x[b] @ w, y[b]))  # <-
    return torch.stack(rows)


def fast(x, w, y):
    return torch.einsum("bi,ij,bj->b", x, w, y)


def inputs():
    return (
        torch.randn(128, 16, requires_grad=True),
        torch.randn(16, 24, requires_grad=True),
        torch.randn(128, 24, requires_grad=True),
    )
