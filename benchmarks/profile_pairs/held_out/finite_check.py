"""Looking for an explosion after every step, against once at the end."""

import torch

CAUSES = ("host-sync",)


def slow(x, w):
    h = torch.zeros_like(x[0])
    for x_t in x.unbind(0):
        h = torch.tanh(h @ w + x_t)
        if not torch.isfinite(h).all():  # <-
            raise RuntimeError("the state exploded")
    return h


def fast(x, w):
    h = torch.zeros_like(x[0])
    for x_t in x.unbind(0):
        h = torch.tanh(h @ w + x_t)
    if not torch.isfinite(h).all():
        raise RuntimeError("the state exploded")
    return h


def inputs():
    return torch.randn(60, 8, 8, requires_grad=True), (0.2 * torch.randn(8, 8)).requires_grad_()
