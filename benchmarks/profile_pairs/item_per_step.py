"""Asking for the residual after every Newton step, against a fixed number of steps."""

import torch

CAUSES = ("host-sync",)


def slow(a, steps=12):
    x = torch.ones_like(a)
    for _ in range(steps):
        x = 0.5 * (x + a / x)
        residual = (x * x - a).abs().max().item()  # <-
        if residual < 0:
            break
    return x


def fast(a, steps=12):
    x = torch.ones_like(a)
    for _ in range(steps):
        x = 0.5 * (x + a / x)
    return x


def inputs():
    return (torch.rand(256, 256).add_(0.5).requires_grad_(),)
