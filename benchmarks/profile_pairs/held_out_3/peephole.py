"""A leaky integrator with a learnt decay that takes exp of the decay in each step, against once."""

import torch

CAUSES = ("loop-invariant",)
FAST_MAY_SAY = ("unhoisted-projection",)  # rightly: the product with the input could leave the loop, too


def slow(x, rate, weight):
    v = torch.zeros_like(x[0])
    for step in x.unbind(0):
        keep = torch.exp(-torch.nn.functional.softplus(rate))  # <-
        v = keep * v + step @ weight
    return v


def fast(x, rate, weight):
    v = torch.zeros_like(x[0])
    keep = torch.exp(-torch.nn.functional.softplus(rate))
    for step in x.unbind(0):
        v = keep * v + step @ weight
    return v


def inputs():
    return (
        torch.randn(60, 8, 32, requires_grad=True),
        torch.randn(32, requires_grad=True),
        torch.randn(32, 32, requires_grad=True),
    )
