"""A recurrent weight that is normalised by a property, in every step, against once."""

import torch
from torch import nn

CAUSES = ("loop-invariant",)


class SlowNormed(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.direction = nn.Parameter(torch.randn(size, size))
        self.gain = nn.Parameter(torch.rand(size, 1))

    @property
    def weight(self):
        return self.gain * self.direction / self.direction.norm(dim=1, keepdim=True)  # <-

    def forward(self, x):
        state = torch.zeros_like(x[0])
        for drive in x.unbind(0):
            state = torch.tanh(drive + state @ self.weight.t())  # <-
        return state


class FastNormed(SlowNormed):
    def forward(self, x):
        state = torch.zeros_like(x[0])
        weight = self.weight.t()
        for drive in x.unbind(0):
            state = torch.tanh(drive + state @ weight)
        return state


torch.manual_seed(0)
slow, fast = SlowNormed(128), FastNormed(128)
fast.load_state_dict(slow.state_dict())


def inputs():
    return (torch.randn(50, 4, 128, requires_grad=True),)
