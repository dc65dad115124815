"""A bilinear score for each pair of rows in a comprehension, against two products."""

import torch

CAUSES = ("element-loop",)


def slow(a, w, b):
    return torch.stack([torch.dot(a[i], w @ b[i]) for i in range(a.size(0))])  # <-


def fast(a, w, b):
    return (a * (b @ w.t())).sum(dim=1)


def inputs():
    return torch.randn(90, 20, requires_grad=True), torch.randn(20, 20, requires_grad=True), torch.randn(90, 20)
