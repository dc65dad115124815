"""Means over sequences of different lengths: one sample at a time, against a mask."""

import torch

CAUSES = ("element-loop", "slot-write")


def slow(x, lengths):
    out = torch.zeros(x.size(0), x.size(2))
    for i in range(x.size(0)):  # <-
        out[i] = x[i, : lengths[i]].mean(dim=0)  # <-
    return out


def fast(x, lengths):
    mask = torch.arange(x.size(1)) < lengths[:, None]
    return (x * mask[:, :, None]).sum(dim=1) / lengths[:, None]


def inputs():
    return torch.randn(64, 20, 32, requires_grad=True), torch.arange(64) % 20 + 1
