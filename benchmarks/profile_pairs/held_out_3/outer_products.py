"""Outer products of all pairs of rows through expand and mul, against einsum."""

import torch

CAUSES = ("materialised-broadcast",)


def slow(a, b):
    return (a[:, :, None] * b[:, None, :]).sum(0)  # <-


def fast(a, b):
    return a.t() @ b


def inputs():
    return torch.randn(256, 48, requires_grad=True), torch.randn(256, 40, requires_grad=True)
