"""Equal elements together get more, or less, gradient than there is.

What it finds
-------------
Where a row of an input holds equal values, they are moved together. forward changes by a certain slope then, and the
gradients of these elements have to add up to it. Where no row has equal values, two elements are made equal.

Why it matters
--------------
A maximum that gives its whole gradient to every element that attains it counts it two or three times. With quantised
activations, padding or a relu in front, ties are the rule.

Known problems
--------------
For ties that the example does not have, this is a warning: they may never occur.

References
----------
https://github.com/kornia/kornia/pull/4184 (ties, where gradcheck fails for right gradients, too)
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradsmith.findings import Finding

if TYPE_CHECKING:
    from gradsmith.lab import Lab
    from gradsmith.lab.explore.ties import Tie

CODE = "GS310"
SEVERITY = "error"
DEMONSTRATION = "tie"
LEVEL = "standard"
EXPLAINS = ("wrong-gradient", "undeclared-surrogate")
BAD = """
import torch


class RowMax(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = x.amax(dim=1)
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx, grad_output):
        x, y = ctx.saved_tensors
        return (x == y[:, None]) * grad_output[:, None]


def example():
    return (torch.tensor([[1.0, 3.0, 3.0], [2.0, 0.0, 1.0]], dtype=torch.float64, requires_grad=True),)


gradsmith_inputs = {"RowMax": example}
"""
GOOD = BAD.replace(
    "return (x == y[:, None]) * grad_output[:, None]",
    "hit = (x == y[:, None]).to(x.dtype)\n        return hit / hit.sum(1, keepdim=True) * grad_output[:, None]",
)


def _how(tie: Tie) -> str:
    low, high = sorted((abs(tie.low), abs(tie.high)))
    same_sign = tie.low * tie.claimed >= 0 and tie.high * tie.claimed >= 0
    return (
        "too much"
        if same_sign and abs(tie.claimed) > high
        else "too little"
        if same_sign and abs(tie.claimed) < low
        else "the wrong"
    )


def _range(tie: Tie) -> str:
    wide = tie.high - tie.low > 1e-6 * abs(tie.high)
    return f"between {tie.low:.6g} and {tie.high:.6g}" if wide else f"{tie.low:.6g}"


def probe(lab: Lab) -> Iterator[Finding]:
    from gradsmith.lab.explore.ties import ties

    if lab.surrogate or lab.approximate or lab.gradient.wrong:
        return
    for tie in ties(lab):
        where = ", ".join(f"{tie.leaf.name}{list(e)}" for e in tie.elements[:3])
        made = "" if tie.given else " (made equal for this test)"
        yield lab.finding(
            f"{lab.target.name}.backward gives equal elements {_how(tie)} gradient: {where} are equal{made}, and their gradients add up "
            f"to {tie.claimed:.6g}. The sum has to be {_range(tie)}, which is grad_output times the change of forward when all of them "
            "move together.",
            at="gradient",
            argument=tie.leaf.name,
            severity="error" if tie.given else "warning",
            advice="Divide the gradient by the number of equal elements (`mask / mask.sum(dim, keepdim=True)`), or give all of it to one of "
            "them (`argmax`).",
            evidence={"elements": [list(e) for e in tie.elements], "claimed": tie.claimed, "true": tie.high},
        )
        return
