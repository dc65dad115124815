"""A causal convolution written as a sliding window, against conv1d."""

import torch
import torch.nn.functional as F

CAUSES = ("element-loop", "time-index", "superlinear-backward")


def slow(x, w):
    k = w.shape[0]
    padded = F.pad(x, (k - 1, 0))
    outputs = []
    for i in range(x.shape[1]):  # <-
        window = padded[:, i : i + k]  # <-
        outputs.append((window * w).sum(dim=1))  # <-
    return torch.stack(outputs, dim=1)


def fast(x, w):
    padded = F.pad(x, (w.shape[0] - 1, 0))
    return F.conv1d(padded.unsqueeze(1), w.view(1, 1, -1)).squeeze(1)


def inputs():
    return torch.randn(16, 200, requires_grad=True), torch.randn(5, requires_grad=True)
