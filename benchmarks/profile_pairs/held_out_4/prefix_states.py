"""All prefixes of a scan kept by cat along the last dimension, against a list."""

import torch

CAUSES = ("cat-in-loop",)


def slow(x):
    total = torch.zeros_like(x[:, :1])
    prefixes = total
    for column in x.split(1, dim=1):
        total = 0.9 * total + column
        prefixes = torch.cat([prefixes, total], 1)  # <-
    return prefixes


def fast(x):
    total = torch.zeros_like(x[:, :1])
    prefixes = [total]
    for column in x.split(1, dim=1):
        total = 0.9 * total + column
        prefixes.append(total)
    return torch.cat(prefixes, 1)


def inputs():
    return (torch.randn(128, 120, requires_grad=True),)
