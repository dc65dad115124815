"""The gradient is not the derivative, and looks as if that were meant.

What it finds
-------------
forward is locally constant (sign, a spike, a mask), the identity, or rounds on the way, and backward returns something
else than the derivative. That is the mark of a surrogate gradient: straight-through, reversal, scaling, clipping. So is
a backward that looks at the value of grad_output, one that smooths the slopes 0 and 1 of forward or passes every gradient
through its bounds, one that returns the gradient of forward without its noise, and one that is right with an input that
forward does not use in the place of another (shake-shake, feedback alignment). What counts is what forward and
backward do: no name, comment or docstring makes a surrogate.

Why it matters
--------------
gradsmith cannot tell a surrogate from a mistake, and neither can the next reader. One comment on the class line says it,
and from then on everything else about the Function (shapes, dtypes, mutation, repeatability) is verified.

Known problems
--------------
A forgotten derivative of a function that happens to be flat at the example inputs looks the same.

References
----------
https://github.com/jeshraghian/snntorch and every quantisation library: most of their Functions are surrogates.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradsmith.findings import Finding

if TYPE_CHECKING:
    from gradsmith.lab import Lab

CODE = "GS217"
SEVERITY = "warning"
WAIVED_BY = ("surrogate",)
OUTCOME = "surrogate"
UNPROVEN = "looks like a surrogate gradient; declare it"
EXPLAINS = ("wrong-gradient",)
BAD = """
import torch


class Round(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.round()

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output


gradsmith_inputs = {"Round": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
"""
GOOD = BAD.replace("(torch.autograd.Function):", "(torch.autograd.Function):  # gradsmith: surrogate[straight-through]")


def probe(lab: Lab) -> Iterator[Finding]:
    from gradsmith.lab.measure.resemblance import HELD, resemblance
    from gradsmith.lab.subject.target import where_comments_go

    if lab.approximate:
        return
    if not lab.gradient.wrong:
        yield from _elsewhere(lab)
        return
    with lab.budget.for_gradient():  # it belongs to the judgement: without it, what is meant would count as wrong
        found = resemblance(lab.gradient, lab.settings)
    if found is None:
        return
    names, kind = ", ".join(dict.fromkeys(f"'{p.leaf.name}'" for p in lab.gradient.wrong)), found.kind
    yield lab.finding(
        f"{lab.target.name}: {found.words.format(names)}. This looks like a surrogate gradient (on purpose not the "
        f"derivative of forward) of the kind {kind}.",
        argument=lab.gradient.wrong[0].leaf.name,
        severity="info" if found.words == HELD else None,
        advice=f"If you do this on purpose, write `# gradsmith: surrogate[{kind}]` {where_comments_go(lab.target)}. If not, "
        f"{_otherwise(found.words)}.",
        evidence={"one of a kind": found.words.format("an input"), "surrogate": kind},
    )


def _otherwise(words: str) -> str:
    """What a gradient that is the derivative of forward would be."""
    from gradsmith.lab.measure.resemblance import CONSTANT, IDENTITY

    if words == CONSTANT:
        return "backward has to return zeros here: there is no other gradient of a step function"
    return "return grad_output unchanged" if words == IDENTITY else "return the derivative of forward"


def _elsewhere(lab: Lab) -> Iterator[Finding]:
    """At the example the gradient is the derivative; a step away it depends on the value of grad_output."""
    from gradsmith.checking.discoveries import meant_elsewhere
    from gradsmith.lab.explore.move import told
    from gradsmith.lab.measure.resemblance import TESTED
    from gradsmith.lab.subject.target import where_comments_go

    for discovery in meant_elsewhere(lab)[:1]:
        mismatch, kind = discovery.trial.mismatch, "clip"
        name = mismatch.argument if mismatch is not None else discovery.trial.moves[0].argument
        words = TESTED.format(f"'{name}'")
        yield lab.finding(
            f"{lab.target.name}: {words}, and {told(discovery.trial.moves)} the gradient is not the derivative. This looks like a "
            f"surrogate gradient (on purpose not the derivative of forward) of the kind {kind}.",
            argument=name,
            advice=f"If you do this on purpose, write `# gradsmith: surrogate[{kind}]` {where_comments_go(lab.target)}. If not, "
            f"{_otherwise(words)}.",
            evidence={"one of a kind": TESTED.format("an input"), "surrogate": kind},
        )
