"""torch.compile of the plain composition is faster than the Function

What it finds
-------------
With `--try`, forward is compiled by torch.compile and differentiated by it; when that is clearly faster than the Function and
gives the same results, the Function is not needed for speed.

Why it matters
--------------
The compiler fuses forward and backward into a few kernels, which hand-written Python cannot. Measured on torch 2.13, one
thread, a polynomial of degree 5 on 512 x 512, forward and backward: 1.55 ms as a Function, 0.69 ms compiled.

Known problems
--------------
Compiling takes seconds to minutes per shape, and a loop over time is unrolled; a Function may still be the better choice
where shapes change all the time. Only looked at when it is asked for.

References
----------
Measured on torch 2.13, see above.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradsmith.findings import Finding

if TYPE_CHECKING:
    from gradsmith.profiling import Profile

CODE = "GS507"
SEVERITY = "info"
EXPLAINS = ()
FIXABLE = False
BAD = """
import torch


class Quintic(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * (1 + x * (0.5 + x * (0.25 + x * (0.125 + x * 0.0625))))

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * (1 + x * (1 + x * (0.75 + x * (0.5 + x * 0.3125))))


gradsmith_inputs = {"Quintic": lambda: (torch.randn(512, 512, requires_grad=True),)}
"""
GOOD = """
import torch


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return torch.add(grad_output * x, grad_output * x)


gradsmith_inputs = {"Square": lambda: (torch.randn(8, 8, requires_grad=True),)}
"""
_FASTER = 1.3


def profile(profile: Profile) -> Iterator[Finding]:
    if profile.bench is None or profile.bench.target.function is None:
        return
    for remedy in profile.remedies:
        if not remedy.name.startswith("torch.compile") or remedy.gain is None or not remedy.gain.low > _FASTER:
            continue
        gain = remedy.gain
        yield profile.finding(
            None,
            f"torch.compile of the plain forward is {gain.value:.1f} times faster than {profile.name} "
            f"({gain.low:.1f} to {gain.high:.1f}), and gives the same results.",
            advice="You do not need this Function for speed: compile what forward computes.",
            share=1 - 1 / gain.value,
            gain=gain.value,
        )
