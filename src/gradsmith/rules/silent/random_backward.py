"""backward draws random numbers.

What it finds
-------------
backward calls the random generator (`torch.rand_like`, `F.dropout`) instead of reusing what forward drew. At run time
backward is repeated under two seeds; the gradients must be equal.

Why it matters
--------------
A dropout mask that is drawn again in backward belongs to another forward: the gradient is noise around the right mean
at best. Checkpointing and retain_graph give different gradients for the same step.

Known problems
--------------
Stochastic rounding and noise on purpose are surrogates: declare them (`# gradsmith: surrogate[noise]`). Where forward
draws nothing, a sampled gradient cannot be forward's mask drawn again, and is a warning.

References
----------
https://github.com/pytorch/pytorch/issues/33800
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradsmith.findings import Finding
from gradsmith.rules.transforms import MISMATCHES
from gradsmith.source.behind import is_free_of_inputs, made_of
from gradsmith.source.knowledge import RANDOM
from gradsmith.source.roles import returned_expressions
from gradsmith.surrogate_kinds import waives

if TYPE_CHECKING:
    from gradsmith.lab import Lab
    from gradsmith.source import FunctionModel, Method

CODE = "GS215"
SEVERITY = "error"
WAIVED_BY = ("noise",)
UNPROVEN = "the gradient is drawn at random; declare it"
DEMONSTRATION = "random"
EXPLAINS = (
    "not-repeatable",
    "nonlinear-backward",
    "wrong-gradient",
    "frozen-input",
    "layout-dependent",
    "class-state",
    "unused-output",
    "undeclared-surrogate",
    *MISMATCHES,
)
BAD = """
import torch


class Dropout(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, p):
        ctx.p = p
        return x * (torch.rand_like(x) > p) / (1 - p)

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * (torch.rand_like(grad_output) > ctx.p) / (1 - ctx.p), None


gradsmith_inputs = {"Dropout": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True), 0.5)}
"""
GOOD = """
import torch
from torch.autograd.function import once_differentiable


class Dropout(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, p):
        keep = torch.rand_like(x) > p
        ctx.save_for_backward(keep)
        ctx.p = p
        return x * keep / (1 - p)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_output):
        (keep,) = ctx.saved_tensors
        return grad_output * keep / (1 - ctx.p), None


gradsmith_inputs = {"Dropout": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True), 0.5)}
"""


def lint(function: FunctionModel) -> Iterator[Finding]:
    backward = function.backward
    if backward is None or waives(function.declaration, WAIVED_BY) or not function.has_gradient:
        return
    text = backward.file.source_of(backward.node)
    if any(word in text for word in ("rng_state", "fork_rng", "manual_seed", "generator=", "stochastic")):
        return  # forward's numbers are drawn again on purpose, or the rounding is random on purpose
    if any(word in function.name.lower() for word in ("stochastic", "noise", "noisy", "dither")):
        return
    if function.forward is not None and _stands_for_shapes(function.forward):
        return
    returned = set(made_of(backward, [found.node.value for found in backward.returns]))
    for call in backward.calls:
        if call.op in RANDOM and call.node in returned and "meta" not in ast.unparse(call.node):
            yield function.at(
                call.node,
                f"{function.name}.{backward.name} draws random numbers ({ast.unparse(call.node.func)}): they are not those that "
                "forward drew.",
                advice="Draw in forward and save the mask (or the generator state) with ctx.save_for_backward.",
                severity="warning",
            )


def _stands_for_shapes(forward: Method) -> bool:
    """No value of an input gets into what forward returns (a Function for the meta device): there are only shapes."""
    outputs = returned_expressions(forward)
    return bool(outputs) and all(is_free_of_inputs(forward, output) for output in outputs)


def probe(lab: Lab) -> Iterator[Finding]:
    from gradsmith.lab.process.state import seed_all

    v = lab.baseline.v
    drawn = []
    # Where forward draws nothing, there is nothing to draw again: the gradient is sampled on purpose.
    alike = lab.close(*(run.outputs[0] for run in (lab.run(seed=1), lab.run(seed=2))))
    for seed in (1, 2, 1):
        run = lab.precise_run()
        seed_all(seed)
        drawn.append(run.gradients(v))
    for leaf in run.arguments.differentiable:
        a, b, again = (grads[leaf.position] for grads in drawn)
        if not lab.close(a, b) and lab.close(a, again):
            yield lab.finding(
                f"{lab.target.name}.backward draws random numbers: the gradient of '{leaf.name}' depends on the seed.",
                argument=leaf.name,
                severity="warning" if alike else None,
                advice="If it is sampled on purpose, write `# gradsmith: surrogate[noise]` at the end of the class line."
                if alike
                else "Draw in forward and save the mask (or the generator state) with ctx.save_for_backward.",
            )
