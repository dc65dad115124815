"""A parameter inside a module argument or a closure gets no gradient.

What it finds
-------------
forward uses parameters that are not among its tensor arguments: those of an nn.Module passed as an argument, or tensors
reached through a global or a closure. Autograd knows only the tensors passed to `apply`, so these get no gradient, unless
backward fills them in itself.

Why it matters
--------------
The wrapped layer trains everything but its own weights. gradcheck looks at the tensor arguments only and passes it.

Known problems
--------------
A backward that calls `torch.autograd.backward` inside (recomputation) does fill them in and is not reported.

References
----------
https://github.com/pytorch/pytorch/issues/3394; measured on torch 2.13: `layer.weight.grad` stays None.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradsmith.findings import Finding

if TYPE_CHECKING:
    from gradsmith.lab import Lab

CODE = "GS209"
SEVERITY = "error"
BAD = """
import torch
from torch import nn


class Apply(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, layer):
        ctx.save_for_backward(x)
        ctx.layer = layer
        return layer(x)

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output @ ctx.layer.weight, None


gradsmith_inputs = {
    "Apply": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True), nn.Linear(3, 5, dtype=torch.float64))
}
"""
GOOD = """
import torch


class Apply(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, bias):
        ctx.save_for_backward(x, weight)
        return torch.nn.functional.linear(x, weight, bias)

    @staticmethod
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        grad_x = grad_output @ weight if ctx.needs_input_grad[0] else None
        grad_weight = grad_output.t() @ x if ctx.needs_input_grad[1] else None
        grad_bias = grad_output.sum(0) if ctx.needs_input_grad[2] else None
        return grad_x, grad_weight, grad_bias


def example():
    layer = torch.nn.Linear(3, 5, dtype=torch.float64)
    return torch.randn(4, 3, dtype=torch.float64, requires_grad=True), layer.weight, layer.bias


gradsmith_inputs = {"Apply": example}
"""


def probe(lab: Lab) -> Iterator[Finding]:
    from gradsmith.lab.hidden import untrained

    for name in untrained(lab):
        yield lab.finding(
            f"{lab.target.name}: the output depends on '{name}', which requires grad but gets none: it is not among the "
            "tensors passed to apply.",
            argument=name,
            advice="Pass the parameter itself as an argument of forward and return its gradient.",
        )
