"""nn.GRUCell stepped over a batch-first sequence, against nn.GRU."""

import torch
from torch import nn

CAUSES = ("builtin-cell",)


class SlowGru(nn.Module):
    def __init__(self, inputs, size):
        super().__init__()
        self.cell = nn.GRUCell(inputs, size)

    def forward(self, x):
        h = torch.zeros(x.size(0), self.cell.hidden_size)
        out = []
        for x_t in x.unbind(1):  # <-
            h = self.cell(x_t, h)  # <-
            out.append(h)
        return torch.stack(out, dim=1)


class FastGru(nn.Module):
    def __init__(self, inputs, size):
        super().__init__()
        self.layer = nn.GRU(inputs, size, batch_first=True)

    def forward(self, x):
        return self.layer(x)[0]


torch.manual_seed(0)
slow, fast = SlowGru(16, 16), FastGru(16, 16)
fast.layer.load_state_dict({f"{name}_l0": value for name, value in slow.cell.state_dict().items()})


def inputs():
    return (torch.randn(4, 80, 16, requires_grad=True),)
