"""A copy of the module does not work like the module.

What it finds
-------------
The module is deep-copied, the copy's parameters are changed, and its state is loaded back: the copy has to follow its own
parameters and, afterwards, to compute what the original computes.

Why it matters
--------------
Target networks, EMA weights, swarms of models and checkpoints are made by deepcopy and state_dict. A function that captured
the original's parameters goes on using them.

Known problems
--------------
Modules without parameters are not tried.

References
----------
Measured on torch 2.13: deepcopy of the example raises, because an attribute is a tensor that has a graph
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradsmith.findings import Finding

if TYPE_CHECKING:
    from gradsmith.lab import Lab

CODE = "GS611"
SEVERITY = "warning"
LEVEL = "standard"
BAD = """
import torch
from torch import nn


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.tensor([1.5, -0.5, 2.0], dtype=torch.float64))
        self.initial = self.weight * 1.0

    def forward(self, x):
        return x * self.weight


Scaled = Scaled()
gradsmith_inputs = {"Scaled": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
"""
GOOD = BAD.replace("self.weight * 1.0", "self.weight.detach().clone()")


def probe(lab: Lab) -> Iterator[Finding]:
    from gradsmith.lab.conditions.environment import module_copy

    if lab.target.module is None:
        return
    outcome = module_copy(lab)
    if outcome.state == "fails":
        yield lab.finding(
            f"{outcome.detail}." if not outcome.detail.endswith(".") else outcome.detail,
            line=lab.line_among(outcome.frames),
            advice=outcome.advice
            or "Read parameters through self in forward, and register everything else as a buffer.",
        )
