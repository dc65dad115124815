"""An Elman layer that reads inputs[t] of a long sequence, against unbind; the projection is hoisted in both."""

import torch
from torch import nn

CAUSES = ("time-index",)


class Slow(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.inward = nn.Linear(size, size)
        self.recurrent = nn.Linear(size, size, bias=False)

    def forward(self, x):
        drive = self.inward(x)
        h = torch.zeros(x.shape[1], x.shape[2])
        states = []
        for t in range(drive.shape[0]):
            h = torch.tanh(drive[t] + self.recurrent(h))  # <-
            states.append(h)
        return torch.stack(states)


class Fast(Slow):
    def forward(self, x):
        h = torch.zeros(x.shape[1], x.shape[2])
        states = []
        for step in self.inward(x).unbind(0):
            h = torch.tanh(step + self.recurrent(h))
            states.append(h)
        return torch.stack(states)


torch.manual_seed(0)
slow, fast = Slow(32), Fast(32)
fast.load_state_dict(slow.state_dict())


def inputs():
    return (torch.randn(300, 16, 32, requires_grad=True),)
