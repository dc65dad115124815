"""An RNN with two Linear layers per step, against the same with the projection hoisted."""

import torch
from torch import nn

CAUSES = ("time-index", "unhoisted-projection")


class SlowRnn(nn.Module):
    def __init__(self, inputs, size):
        super().__init__()
        self.inner = nn.Linear(inputs, size)
        self.hidden = nn.Linear(size, size)

    def forward(self, x):
        h = x.new_zeros(x.shape[1], self.hidden.out_features)
        out = []
        for t in range(x.shape[0]):
            h = torch.tanh(self.inner(x[t]) + self.hidden(h))  # <-
            out.append(h)
        return torch.stack(out)


class FastRnn(nn.Module):
    def __init__(self, inputs, size):
        super().__init__()
        self.inner = nn.Linear(inputs, size)
        self.hidden = nn.Linear(size, size)

    def forward(self, x):
        h = x.new_zeros(x.shape[1], self.hidden.out_features)
        out = []
        for projected in self.inner(x).unbind(0):
            h = torch.tanh(projected + self.hidden(h))
            out.append(h)
        return torch.stack(out)


torch.manual_seed(0)
slow, fast = SlowRnn(64, 64), FastRnn(64, 64)
fast.load_state_dict(slow.state_dict())
FAST_MAY_SAY = ("builtin-cell",)  # true of the fast one as well: see rnn_builtin


def inputs():
    return (torch.randn(100, 16, 64, requires_grad=True),)
