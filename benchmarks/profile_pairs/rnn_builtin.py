"""An RNN with two Linear layers per step, against nn.RNN."""

import torch
from torch import nn

CAUSES = ("builtin-cell",)


class SlowRnn(nn.Module):
    def __init__(self, inputs, size):
        super().__init__()
        self.inner = nn.Linear(inputs, size)
        self.hidden = nn.Linear(size, size)

    def forward(self, x):
        h = x.new_zeros(x.shape[1], self.hidden.out_features)
        out = []
        for t in range(x.shape[0]):  # <-
            h = torch.tanh(self.inner(x[t]) + self.hidden(h))  # <-
            out.append(h)
        return torch.stack(out)


class FastRnn(nn.Module):
    def __init__(self, inputs, size):
        super().__init__()
        self.layer = nn.RNN(inputs, size)

    def forward(self, x):
        return self.layer(x)[0]


torch.manual_seed(0)
slow, fast = SlowRnn(16, 16), FastRnn(16, 16)
names = ("weight_ih_l0", "bias_ih_l0", "weight_hh_l0", "bias_hh_l0")
fast.layer.load_state_dict(dict(zip(names, slow.state_dict().values())))


def inputs():
    return (torch.randn(128, 4, 16, requires_grad=True),)
