"""A highway recurrence that projects its input within the loop and reads x[:, t], against both before the loop."""

import torch
from torch import nn

CAUSES = ("unhoisted-projection", "time-index")


class Slow(nn.Module):
    def __init__(self, n, m):
        super().__init__()
        self.input, self.state = nn.Linear(n, 2 * m), nn.Linear(m, 2 * m)

    def forward(self, x):
        h = torch.zeros(x.shape[0], self.state.in_features)
        for t in range(x.shape[1]):
            gate, value = (self.input(x[:, t]) + self.state(h)).chunk(2, dim=1)  # <-
            gate = torch.sigmoid(gate)
            h = gate * torch.tanh(value) + (1 - gate) * h
        return h


class Fast(Slow):
    def forward(self, x):
        h = torch.zeros(x.shape[0], self.state.in_features)
        for drive in self.input(x).unbind(1):
            gate, value = (drive + self.state(h)).chunk(2, dim=1)
            gate = torch.sigmoid(gate)
            h = gate * torch.tanh(value) + (1 - gate) * h
        return h


torch.manual_seed(0)
slow, fast = Slow(24, 16), Fast(24, 16)
fast.load_state_dict(slow.state_dict())


def inputs():
    return (torch.randn(8, 150, 24, requires_grad=True),)
