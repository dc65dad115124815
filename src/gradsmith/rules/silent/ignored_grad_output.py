"""backward does not use grad_output.

What it finds
-------------
backward takes a grad_output and never uses it. At run time backward is called with two unrelated grad_outputs: where the
gradient is the same for both, it does not depend on them. (One that only forgets their scale is `nonlinear-backward`.)

Why it matters
--------------
It is right only where the Function is the last step of the loss. A weighted loss, a sum of two losses, gradient scaling
or mixed precision multiply grad_output, and this Function drops the factor.

Known problems
--------------
Outputs that are marked non-differentiable need no grad_output. This rule applies to a surrogate, too, unless it adds a
gradient of its own: declare that one (`# gradsmith: surrogate[aux-loss]`).

References
----------
https://github.com/SeanNaren/warp-ctc/issues/69, https://github.com/ashawkey/stable-dreamfusion/issues/158
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradsmith.findings import Finding
from gradsmith.source.behind import is_free_of_inputs
from gradsmith.source.lexicon import is_a
from gradsmith.surrogate_kinds import waives

if TYPE_CHECKING:
    from gradsmith.lab import Lab
    from gradsmith.source import FunctionModel

CODE = "GS205"
SEVERITY = "error"
WAIVED_BY = ("aux-loss",)
EXPLAINS = ("nonlinear-backward", "wrong-gradient", "undeclared-surrogate")
BAD = """
import torch


class SquaredError(torch.autograd.Function):
    @staticmethod
    def forward(ctx, prediction, target):
        ctx.save_for_backward(prediction, target)
        return (prediction - target).square().sum()

    @staticmethod
    def backward(ctx, grad_output):
        prediction, target = ctx.saved_tensors
        return 2 * (prediction - target), None


def example():
    return torch.randn(4, 3, dtype=torch.float64, requires_grad=True), torch.randn(4, 3, dtype=torch.float64)


gradsmith_inputs = {"SquaredError": example}
"""
GOOD = BAD.replace("return 2 * (prediction", "return grad_output * 2 * (prediction")


def lint(function: FunctionModel) -> Iterator[Finding]:
    backward = function.backward
    if backward is None or not function.has_gradient or not backward.params:
        return
    if waives(function.declaration, WAIVED_BY):
        return
    names = {p.name for p in backward.params}
    if all(name.startswith("_") or is_a(name, "unused") for name in names):
        return  # the author says so: a gradient that travels another way
    if any(n.id in names for n in backward.of(ast.Name)):
        return
    if any(getattr(n.func, "id", "") in ("locals", "super") for n in backward.of(ast.Call)):
        return
    if _returns_a_token(function):
        return  # it only holds the graph together: there is nothing that grad_output could scale
    given = [e for found in backward.returns for e in (found.elements or [])]
    whole = [found.value for found in backward.returns if found.elements is None]
    if not all(_computes(value) for value in whole):
        return
    if not whole and all(_is_none(e) or backward.value(e).constant for e in given):
        return  # a stop: nothing flows, whatever comes
    yield function.at(
        backward.node,
        f"{function.name}.{backward.name} never uses {' or '.join(sorted(repr(n) for n in names))}: what comes after "
        f"{function.name} has no influence on the gradient.",
        advice=f"Multiply what backward returns by {backward.params[0].name}.",
        argument="grad_output",
        severity="warning",
    )


def _returns_a_token(function: FunctionModel) -> bool:
    """Whether no output of forward is made from an input."""
    forward = function.forward
    if forward is None or not forward.returns:
        return False
    return all(found.value is not None and is_free_of_inputs(forward, found.value) for found in forward.returns)


def _computes(value: ast.expr | None) -> bool:
    """A call that returns all gradients at once; `tuple(...)` may hold nothing but None."""
    called = value.func if isinstance(value, ast.Call) else None
    return called is not None and getattr(called, "id", "") not in ("tuple", "list", "dict")


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def probe(lab: Lab) -> Iterator[Finding]:
    run = lab.baseline.run
    # Unrelated, not doubled: a backward that divides by the largest grad_output forgets the scale, and uses the rest.
    other = lab.gradients(run.normal(lab.generator(37)))
    used = False
    moved = False
    for leaf in run.arguments.differentiable:
        a, b = lab.baseline.gradients[leaf.position], other[leaf.position]
        # What cannot be told from zero says nothing about its factor.
        if a is None or b is None or lab.close(a, a * 0) or lab.is_rounding(leaf, a, b):
            continue
        moved = True
        used = used or not lab.close(a, b)
    if moved and not used:
        yield lab.finding(
            f"{lab.target.name}.backward ignores grad_output: another grad_output gives the same gradient.",
            argument="grad_output",
            advice="Multiply what backward returns by grad_output; if it brings a gradient of its own on purpose, declare it "
            "with `# gradsmith: surrogate[aux-loss]`.",
        )
