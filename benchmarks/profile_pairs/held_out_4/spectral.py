"""A weight divided by its norm in every step of a recurrence, against once before it."""

import torch

CAUSES = ("loop-invariant",)


def slow(x, w):
    h = torch.zeros(x.shape[1], w.shape[0])
    out = []
    for step in x.unbind(0):
        h = torch.tanh(step + h @ (w / w.norm()))  # <-
        out.append(h)
    return torch.stack(out)


def fast(x, w):
    h = torch.zeros(x.shape[1], w.shape[0])
    scaled = w / w.norm()
    out = []
    for step in x.unbind(0):
        h = torch.tanh(step + h @ scaled)
        out.append(h)
    return torch.stack(out)


def inputs():
    return torch.randn(70, 4, 64, requires_grad=True), torch.randn(64, 64, requires_grad=True)
