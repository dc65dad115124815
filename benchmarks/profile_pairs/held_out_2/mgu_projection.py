"""A minimal gated unit whose two input projections stand in the loop, against both before it."""

import torch
from torch import nn

CAUSES = ("unhoisted-projection",)


class Slow(nn.Module):
    def __init__(self, n, m):
        super().__init__()
        self.xf, self.xh = nn.Linear(n, m), nn.Linear(n, m)
        self.hf, self.hh = nn.Linear(m, m), nn.Linear(m, m)

    def forward(self, x):
        h = torch.zeros(x.shape[1], self.hf.out_features)
        for step in x.unbind(0):
            f = torch.sigmoid(self.xf(step) + self.hf(h))  # <-
            candidate = torch.tanh(self.xh(step) + self.hh(f * h))  # <-
            h = (1 - f) * h + f * candidate
        return h


class Fast(Slow):
    def forward(self, x):
        h = torch.zeros(x.shape[1], self.hf.out_features)
        for a, b in zip(self.xf(x).unbind(0), self.xh(x).unbind(0)):
            f = torch.sigmoid(a + self.hf(h))
            candidate = torch.tanh(b + self.hh(f * h))
            h = (1 - f) * h + f * candidate
        return h


torch.manual_seed(0)
slow, fast = Slow(48, 24), Fast(48, 24)
fast.load_state_dict(slow.state_dict())


def inputs():
    return (torch.randn(80, 6, 48, requires_grad=True),)
