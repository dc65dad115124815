"""A second backward through the same graph gives a different gradient.

What it finds
-------------
backward is called twice with the same grad_output and `retain_graph=True`. The two gradients have to be equal. A second
call that raises is a warning: nobody gets a wrong number from it. Another call, with another grad_output, must leave alone
what the calls before it returned.

Why it matters
--------------
Something backward uses is changed by backward: a saved tensor written in place, a list on ctx that is popped, a
counter. With `retain_graph=True`, with two losses on one graph, and under gradient checkpointing the second result is
silently different. A buffer that is returned and filled again changes a gradient that somebody still holds: of two uses
of the Function in one graph, autograd keeps the first gradient while it computes the second.

Known problems
--------------
Atomic additions on GPUs differ in the last bits; the comparison allows for rounding.

References
----------
https://github.com/linkedin/Liger-Kernel/issues/272, https://github.com/pytorch/pytorch/issues/16947
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradsmith.findings import Finding
from gradsmith.rules.transforms import MISMATCHES

if TYPE_CHECKING:
    from gradsmith.lab import Lab

CODE = "GS220"
SEVERITY = "error"
WRITES_IN = "backward"
WAIVED_BY = ("noise",)
DEMONSTRATION = "repeat"
EXPLAINS = ("accumulated-grad", "nonlinear-backward", "wrong-gradient", "frozen-input", "layout-dependent", *MISMATCHES)
BAD = """
import torch


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.factors = [factor, 1.0]
        return x * factor

    @staticmethod
    def backward(ctx, grad_output):
        factor = ctx.factors.pop(0) if len(ctx.factors) > 1 else ctx.factors[0]
        return grad_output * factor, None


gradsmith_inputs = {"Scale": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True), 2.5)}
"""
GOOD = """
import torch


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.factor = factor
        return x * factor

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * ctx.factor, None


gradsmith_inputs = {"Scale": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True), 2.5)}
"""


def probe(lab: Lab) -> Iterator[Finding]:
    run = lab.precise_run()
    v = lab.baseline.v
    first = run.gradients(v)
    try:
        second = run.gradients(v)
    except Exception as error:  # the user's backward may raise anything the second time
        yield lab.finding(
            f"{lab.target.name}.backward works once: the second call with retain_graph=True {_told(error)}",
            severity="warning",  # loud, and some free their inputs on purpose
            advice="Do not free or pop what backward needs; PyTorch frees saved tensors itself.",
        )
        return
    differing = False
    for leaf in run.arguments.differentiable:
        a, b = first[leaf.position], second[leaf.position]
        if not lab.close(a, b):
            differing = True
            yield lab.finding(
                f"{lab.target.name}.backward returns two different gradients of '{leaf.name}' when it is called twice with "
                "retain_graph=True.",
                at="changed",
                argument=leaf.name,
                advice="Leave everything as it is that the next backward reads: do not pop from a list on ctx, do not assign to ctx, do "
                "not write into saved tensors.",
            )
    if not differing:
        yield from _handed_out(lab)


def _told(error: Exception) -> str:
    from gradsmith.lab.measure.memory import FreedMemory

    if isinstance(error, FreedMemory):
        return f"{error}. That can end the process."
    return f"raises {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"


def _handed_out(lab: Lab) -> Iterator[Finding]:
    """Gradients that one backward returned, looked at again after the next one."""
    from torch import Tensor

    from gradsmith.lab.measure.memory import whole
    from gradsmith.lab.measure.raw import argument_names, forward_of
    from gradsmith.lab.measure.values import unchanged
    from gradsmith.lab.subject.target import short_name
    from gradsmith.lab.subject.wrapped import has_memory

    run = lab.precise_run()
    run.gradients(lab.baseline.v)
    returned = [
        (call, i, value, value.detach().clone())
        for call in run.trace.backwards
        for i, value in enumerate(call.returned)
        if isinstance(value, Tensor) and has_memory(value)
    ]
    for other in (run, lab.precise_run()):  # a buffer on ctx, and one that outlives the graph
        other.gradients(run.normal(lab.generator(43)))
    for call, i, value, before in returned:
        if whole(value) and unchanged(before, value):
            continue
        forward = forward_of(run.trace, call)
        names = argument_names(call.cls, len(forward.args)) if forward is not None else []
        name = names[i] if i < len(names) else f"input {i}"
        yield lab.finding(
            f"{short_name(call.cls)}.backward: a gradient handed out changes later. The next backward writes into the "
            f"tensor that was returned as the gradient of '{name}'.",
            function=short_name(call.cls),
            argument=name,
            advice="Return a new tensor from every backward: `buffer.clone()`, or no buffer at all.",
        )
