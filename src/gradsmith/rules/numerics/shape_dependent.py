"""The gradient is right for the example's shape, and wrong for another that forward accepts.

What it finds
-------------
PyTorch itself says which sizes forward compares with each other; equal sizes that nobody compares are free of each other.
Each free size is then set to 1, 2, small primes or multiples, to 300 where that is cheap and, in a process of its own, to 0.
For every size that forward accepts, the gradient has to be the derivative. The values stay in the domains of the example
(rows that sum to 1 still do), and where other values alone are enough to make the gradient wrong, it is not called a matter of size.

Why it matters
--------------
Block sizes, `squeeze()`, `view(-1)`, a batch of one and a sum over the wrong dimension all pass the one test that their
author wrote. They show in the last, smaller batch of an epoch, or in somebody else's model.

Known problems
--------------
A size that forward merely fails to reject may never have been meant. What backward raises there is `info`. An added
dimension is tried only where forward treats it as a batch, and is an assumption (`assumes`).

References
----------
https://github.com/fla-org/flash-linear-attention/issues/632 (only K == V was tried),
https://github.com/pytorch/pytorch/issues/82644, https://github.com/nerfstudio-project/gsplat/issues/623
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradsmith.findings import Finding
from gradsmith.rules.transforms import MISMATCHES

if TYPE_CHECKING:
    from gradsmith.lab import Lab

CODE = "GS309"
SEVERITY = "error"
LEVEL = "standard"
EXPLAINS = MISMATCHES
BAD = '''
import torch


class MeanSquare(torch.autograd.Function):
    """The mean over rows and columns, with the author's batch of four built into backward."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.square().mean()

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * 2 * x / (4 * x.shape[1])


gradsmith_inputs = {"MeanSquare": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
'''
GOOD = BAD.replace("(4 * x.shape[1])", "x.numel()").replace(", with the author's batch of four built into backward", "")


def probe(lab: Lab) -> Iterator[Finding]:
    from gradsmith.checking.discoveries import discovered

    yield from discovered(lab, ("size",), "Take every size from the tensors at hand, and reduce by name.")
