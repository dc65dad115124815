"""backward writes into a saved tensor.

What it finds
-------------
A tensor that came out of `ctx.saved_tensors` is changed by backward: `x.add_(1)`, `mask *= g`, `out=x`, or a kernel that
writes into it. At run time the values of saved tensors are compared before and after backward, which also sees writes
that the version counter misses (NumPy, `.data`, Triton).

Why it matters
--------------
A saved input is the caller's own tensor: the write changes their data. A second backward through the graph reads the
changed values and is wrong without an error.

Known problems
--------------
Kernel launches hide their writes from the source lens; the run-time lens sees them.

References
----------
https://github.com/linkedin/Liger-Kernel/issues/272, https://github.com/NVIDIA/apex/issues/1587
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradsmith.findings import Finding

if TYPE_CHECKING:
    from gradsmith.lab import Lab

CODE = "GS203"
SEVERITY = "error"
EXPLAINS = (
    "not-repeatable",
    "nonlinear-backward",
    "wrong-gradient",
    "frozen-input",
    "layout-dependent",
    "unused-output",
    "class-state",
)
BAD = """
import torch


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        x.mul_(2)
        return grad_output * x


gradsmith_inputs = {"Square": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
"""
GOOD = BAD.replace("x.mul_(2)\n        return grad_output * x", "return grad_output * 2 * x")


def probe(lab: Lab) -> Iterator[Finding]:
    import torch

    from gradsmith.lab.raw import argument_names
    from gradsmith.lab.target import short_name

    run = lab.run()
    kept = [
        (call, i, tensor, tensor.detach().clone())
        for call in run.trace.forwards
        for i, tensor in enumerate(call.saved)
        if tensor is not None
    ]
    run.gradients(run.normal(lab.generator(3)))
    for call, i, tensor, before in kept:
        if torch.equal(tensor.detach().nan_to_num(), before.nan_to_num()):
            continue
        names = argument_names(call.cls, len(call.args))
        name = next((names[k] for k, arg in enumerate(call.args) if arg is tensor), f"saved tensor {i}")
        yield lab.finding(
            f"{short_name(call.cls)}.backward writes into '{name}', which it got from ctx.saved_tensors.",
            function=short_name(call.cls),
            argument=name,
            advice=f"Work on a new tensor: `{name} * 2` or `{name}.clone()` instead of an in-place operation.",
        )
