"""The gradient is wrong when an index occurs twice.

What it finds
-------------
Ids get one value twice, leave one out, come in another order, and take the numbers on both sides of what forward compares
them with; the gradient is judged again. Where forward writes at ids without adding up, torch itself leaves repeats open, and they
are not tried. What the example hardly has by accident (a permutation, many sorted ids) gives an assumption (`assumes`), and so does
a negative id.

Why it matters
--------------
A row that is read twice gets the sum of two gradients. `grad[index] = grad_output` keeps only the last one; it takes
`index_add_`. Real batches repeat tokens and neighbours, the author's four indices did not.

Known problems
--------------
A Function may demand distinct ids; forward should then check them, or the assumption be accepted.

References
----------
https://github.com/pytorch/pytorch/issues/1631, https://github.com/pytorch/pytorch/issues/57006
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from gradsmith.findings import Finding

if TYPE_CHECKING:
    from gradsmith.lab import Lab

_ACCUMULATE = "Accumulate: grad.index_add_(dim, index, grad_output) instead of grad[index] = grad_output."
_ANY_IDS = "Let backward follow the ids that forward was given, whichever they are and in whatever order."
CODE = "GS315"
SEVERITY = "warning"
LEVEL = "standard"
BAD = """
import torch


class Rows(torch.autograd.Function):
    @staticmethod
    def forward(ctx, table, index):
        ctx.save_for_backward(index)
        ctx.shape = table.shape
        return table[index]

    @staticmethod
    def backward(ctx, grad_output):
        (index,) = ctx.saved_tensors
        grad = grad_output.new_zeros(ctx.shape)
        grad[index] = grad_output
        return grad, None


def example():
    return torch.randn(5, 3, dtype=torch.float64, requires_grad=True), torch.tensor([3, 0, 4])


gradsmith_inputs = {"Rows": example}
"""
GOOD = BAD.replace("grad[index] = grad_output", "grad.index_add_(0, index, grad_output)")


def probe(lab: Lab) -> Iterator[Finding]:
    from gradsmith.checking.discoveries import discovered

    for found in discovered(lab, ("ids",), ""):
        repeats = any(move.get("way") == "repeat" for move in found.evidence["moves"])
        yield replace(found, advice=found.advice or (_ACCUMULATE if repeats else _ANY_IDS))
