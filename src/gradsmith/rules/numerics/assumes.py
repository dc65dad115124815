"""The gradient is right only under an assumption about its inputs.

What it finds
-------------
The example has a structure that random numbers do not have: rows that sum to 1, a symmetric matrix, sorted ids, zeros and
ones. gradsmith breaks that structure, and the gradient is wrong there. Or forward clamps an input, no value of the example
lies beyond the bound, and backward goes on as if there was none.

Why it matters
--------------
Perhaps nobody will ever pass anything else: a softmax sums to 1. Perhaps the example only looks so by chance, and the first
user with another one trains on a wrong gradient. gradsmith cannot know, so it says what it saw once and leaves the
verdict alone. An assumption that you accept is not reported any more, and still stands in the verdict line: write
`# gradsmith: assumes[matrix is symmetric]` at the end of the class line (the report has the words to paste),
`@gs.example_inputs(..., assumes="matrix is symmetric")`, or, in pyproject.toml,
`[tool.gradsmith.assumes]` with `QuadraticForm = ["matrix is symmetric"]`.

Known problems
--------------
Whether a structure is meant is decided by how unlikely it is in random numbers (less than 1 in 1000), not by names or
comments.

References
----------
https://pytorch.org/docs/stable/generated/torch.linalg.eigh.html (the gradient is that for symmetric matrices only)
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradsmith.findings import Finding

if TYPE_CHECKING:
    from gradsmith.lab import Lab

CODE = "GS319"
SEVERITY = "warning"
LEVEL = "standard"
BAD = '''
import torch


class QuadraticForm(torch.autograd.Function):
    """x' A x for each row of x."""

    @staticmethod
    def forward(ctx, x, matrix):
        ctx.save_for_backward(x, matrix)
        return ((x @ matrix) * x).sum(-1)

    @staticmethod
    def backward(ctx, grad_output):
        x, matrix = ctx.saved_tensors
        return 2 * grad_output[:, None] * (x @ matrix), x.mT @ (grad_output[:, None] * x)


def example():
    x = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    half = torch.randn(3, 3, dtype=torch.float64)
    return x, (half + half.mT).requires_grad_()


gradsmith_inputs = {"QuadraticForm": example}
'''
GOOD = BAD.replace("2 * grad_output[:, None] * (x @ matrix)", "grad_output[:, None] * (x @ matrix + x @ matrix.mT)")


def probe(lab: Lab) -> Iterator[Finding]:
    from gradsmith.checking.accepting import is_accepted
    from gradsmith.checking.discoveries import assumed, assumption_finding, confined, confined_finding, sentence_of

    for name, sentence in confined(lab):
        if not is_accepted(sentence, lab.accepted):
            yield confined_finding(lab, name, sentence)
    told = [d for d in assumed(lab) if not is_accepted(sentence_of(d), lab.accepted)]
    yield from (assumption_finding(lab, discovery) for discovery in told)
