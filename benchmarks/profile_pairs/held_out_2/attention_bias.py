"""A positional bias computed in every layer's step though it depends on nothing that changes, against once."""

import torch

CAUSES = ("loop-invariant",)


def _bias(table, n):
    distance = torch.arange(n)[:, None] - torch.arange(n)[None]
    return table[distance.clamp(-16, 16) + 16]  # <-


def slow(x, table):
    for _ in range(6):
        scores = x @ x.transpose(1, 2) / 8 + _bias(table, x.shape[1])  # <-
        x = torch.softmax(scores, dim=-1) @ x
    return x


def fast(x, table):
    bias = _bias(table, x.shape[1])
    for _ in range(6):
        x = torch.softmax(x @ x.transpose(1, 2) / 8 + bias, dim=-1) @ x
    return x


def inputs():
    return torch.randn(2, 96, 32, requires_grad=True), torch.randn(33, requires_grad=True)
