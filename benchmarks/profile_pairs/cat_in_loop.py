"""Growing the result with cat, against a list."""

import torch

CAUSES = ("cat-in-loop",)


def slow(x, a):
    h = torch.zeros_like(x[0])
    out = None
    for x_t in x.unbind(0):
        h = torch.tanh(a * h + x_t)
        out = h.unsqueeze(0) if out is None else torch.cat((out, h.unsqueeze(0)), dim=0)  # <-
    return out


def fast(x, a):
    h = torch.zeros_like(x[0])
    out = []
    for x_t in x.unbind(0):
        h = torch.tanh(a * h + x_t)
        out.append(h)
    return torch.stack(out)


def inputs():
    return torch.randn(400, 4, 64, requires_grad=True), torch.rand(64, requires_grad=True)
