"""A polynomial evaluated one coefficient vector per sample in a Python loop, against Horner on the whole batch."""

import torch

CAUSES = ("element-loop",)


def slow(x, coefficients):
    results = []
    for b in range(x.shape[0]):  # <-
        y = torch.zeros_like(x[b])
        for c in coefficients[b]:
            y = y * x[b] + c  # <-
        results.append(y)
    return torch.stack(results)


def fast(x, coefficients):
    y = torch.zeros_like(x)
    for c in coefficients.unbind(1):
        y = y * x + c[:, None]
    return y


def inputs():
    return torch.randn(40, 64, requires_grad=True), torch.randn(40, 4, requires_grad=True)
