"""A smoothing filter that appends to its output with cat, against a list."""

import torch

CAUSES = ("cat-in-loop",)


def slow(x, alpha):
    level, keep = x[:, 0], 1 - alpha
    outputs = level.unsqueeze(1)
    for step in x.unbind(1)[1:]:
        level = alpha * step + keep * level
        outputs = torch.cat((outputs, level.unsqueeze(1)), dim=1)  # <-
    return outputs


def fast(x, alpha):
    level, keep = x[:, 0], 1 - alpha
    outputs = [level]
    for step in x.unbind(1)[1:]:
        level = alpha * step + keep * level
        outputs.append(level)
    return torch.stack(outputs, dim=1)


def inputs():
    return torch.randn(32, 250, 32, requires_grad=True), torch.rand(32, requires_grad=True)
