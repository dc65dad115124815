"""x[t] in a linear recurrence, against unbind."""

import torch

CAUSES = ("time-index",)


def slow(x, a):
    h = torch.zeros_like(x[0])
    out = []
    for t in range(x.shape[0]):
        h = a * h + x[t]  # <-
        out.append(h)
    return torch.stack(out)


def fast(x, a):
    h = torch.zeros_like(x[0])
    out = []
    for x_t in x.unbind(0):
        h = a * h + x_t
        out.append(h)
    return torch.stack(out)


def inputs():
    return torch.randn(400, 4, 64, requires_grad=True), torch.rand(64, requires_grad=True)
