"""A spiking layer with a surrogate Function; the input projection in the loop, against before it."""

import torch
from torch import nn

CAUSES = ("unhoisted-projection",)


class Spike(torch.autograd.Function):
    @staticmethod
    def forward(ctx, v):
        ctx.save_for_backward(v)
        return (v > 0).to(v.dtype)

    @staticmethod
    def backward(ctx, grad_output):
        (v,) = ctx.saved_tensors
        return grad_output / (1 + 10 * v.abs()) ** 2


class SlowLif(nn.Module):
    def __init__(self, inputs, size):
        super().__init__()
        self.fc = nn.Linear(inputs, size)

    def forward(self, x):
        v = x.new_zeros(x.shape[1], self.fc.out_features)
        spikes = []
        for now in x.unbind(0):
            v = 0.9 * v + self.fc(now)  # <-
            s = Spike.apply(v - 1)
            v = v - s
            spikes.append(s)
        return torch.stack(spikes)


class FastLif(nn.Module):
    def __init__(self, inputs, size):
        super().__init__()
        self.fc = nn.Linear(inputs, size)

    def forward(self, x):
        v = x.new_zeros(x.shape[1], self.fc.out_features)
        spikes = []
        for current in self.fc(x).unbind(0):
            v = 0.9 * v + current
            s = Spike.apply(v - 1)
            v = v - s
            spikes.append(s)
        return torch.stack(spikes)


torch.manual_seed(0)
slow, fast = SlowLif(256, 64), FastLif(256, 64)
fast.load_state_dict(slow.state_dict())


def inputs():
    return (torch.randn(60, 8, 256, requires_grad=True),)
