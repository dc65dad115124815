"""An exponential moving average written into a buffer, against a list."""

import torch

CAUSES = ("slot-write", "time-index")


def slow(x, decay):
    y = torch.zeros_like(x)
    y[:, 0] = x[:, 0]
    for t in range(1, x.shape[1]):
        y[:, t] = decay * y[:, t - 1] + (1 - decay) * x[:, t]  # <-
    return y


def fast(x, decay):
    steps = x.unbind(1)
    y = [steps[0]]
    for x_t in steps[1:]:
        y.append(decay * y[-1] + (1 - decay) * x_t)
    return torch.stack(y, dim=1)


def inputs():
    return torch.randn(16, 200, 16, requires_grad=True), 0.9
