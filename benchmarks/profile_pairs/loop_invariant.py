"""A softmax of the weights in every step, against once."""

import torch
from torch import nn

CAUSES = ("loop-invariant",)


class SlowMixer(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.logits = nn.Parameter(torch.randn(size, size))

    def forward(self, x):
        h = torch.zeros_like(x[0])
        for x_t in x.unbind(0):
            h = torch.tanh(h @ torch.softmax(self.logits, dim=-1) + x_t)  # <-
        return h


class FastMixer(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.logits = nn.Parameter(torch.randn(size, size))

    def forward(self, x):
        h = torch.zeros_like(x[0])
        mixing = torch.softmax(self.logits, dim=-1)
        for x_t in x.unbind(0):
            h = torch.tanh(h @ mixing + x_t)
        return h


slow, fast = SlowMixer(128), FastMixer(128)
fast.load_state_dict(slow.state_dict())


def inputs():
    return (torch.randn(60, 8, 128, requires_grad=True),)
