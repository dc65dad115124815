"""A ReLU RNN written out step by step, against nn.RNN."""

import torch
from torch import nn

CAUSES = ("builtin-cell",)


class Slow(nn.Module):
    def __init__(self, n, m):
        super().__init__()
        self.ih, self.hh = nn.Linear(n, m), nn.Linear(m, m)

    def forward(self, x):
        projected = self.ih(x).unbind(0)
        h = torch.zeros(x.shape[1], self.hh.out_features)
        out = []
        for p in projected:  # <-
            h = torch.relu(p + self.hh(h))  # <-
            out.append(h)
        return torch.stack(out)


class Fast(nn.Module):
    def __init__(self, n, m):
        super().__init__()
        self.rnn = nn.RNN(n, m, nonlinearity="relu")

    def forward(self, x):
        return self.rnn(x)[0]


torch.manual_seed(0)
slow, fast = Slow(16, 32), Fast(16, 32)
fast.rnn.load_state_dict(
    {
        "weight_ih_l0": slow.ih.weight,
        "bias_ih_l0": slow.ih.bias,
        "weight_hh_l0": slow.hh.weight,
        "bias_hh_l0": slow.hh.bias,
    }
)


def inputs():
    return (torch.randn(100, 8, 16, requires_grad=True),)
