"""A fixed-point iteration that asks after each step whether it has converged, against a fixed number of steps."""

import torch

CAUSES = ("host-sync",)


def slow(z, w):
    for _ in range(60):
        new = torch.tanh(z @ w)
        if (new - z).abs().max().item() < -1.0:  # <-
            break
        z = new
    return z


def fast(z, w):
    for _ in range(60):
        z = torch.tanh(z @ w)
    return z


def inputs():
    return torch.randn(8, 24, requires_grad=True), torch.randn(24, 24, requires_grad=True)
