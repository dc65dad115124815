"""nn.LSTMCell in a Python loop, against nn.LSTM."""

import torch
from torch import nn

CAUSES = ("builtin-cell",)


class SlowLstm(nn.Module):
    def __init__(self, inputs, size):
        super().__init__()
        self.cell = nn.LSTMCell(inputs, size)
        self.size = size

    def forward(self, x):
        h = x.new_zeros(x.shape[1], self.size)
        c = x.new_zeros(x.shape[1], self.size)
        out = []
        for now in x.unbind(0):  # <-
            h, c = self.cell(now, (h, c))  # <-
            out.append(h)
        return torch.stack(out)


class FastLstm(nn.Module):
    def __init__(self, inputs, size):
        super().__init__()
        self.layer = nn.LSTM(inputs, size)

    def forward(self, x):
        return self.layer(x)[0]


torch.manual_seed(0)
slow, fast = SlowLstm(16, 16), FastLstm(16, 16)
fast.layer.load_state_dict({f"{name}_l0": value for name, value in slow.cell.state_dict().items()})


def inputs():
    return (torch.randn(96, 4, 16, requires_grad=True),)
