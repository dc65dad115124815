"""calling the Function costs more than what it computes

What it finds
-------------
A Function with `setup_context` that is called many times on small tensors. `Function.apply` binds the signature with `inspect` on
every call of such a Function; the profile counts the calls and weighs them with the cost measured on this machine.

Why it matters
--------------
Measured on torch 2.13, 8 elements: ctx in forward costs 3.5 us a call over the built-in operation, setup_context 15 us,
30 us with backward. 64 calls in a row on 8 elements,
forward and backward: 4.2 ms with setup_context, 1.6 ms with ctx in forward.

Known problems
--------------
torch.func and vmap need setup_context; where they are used there is no choice. One call on a large tensor is not reported.

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

CODE = "GS508"
SEVERITY = "info"
EXPLAINS = ()
FIXABLE = False
BAD = """
import torch


class Spike(torch.autograd.Function):
    @staticmethod
    def forward(v):
        return torch.sin(v)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, grad_output):
        (v,) = ctx.saved_tensors
        return grad_output * torch.cos(v)


def repeated(x, steps=24):
    for _ in range(steps):
        x = Spike.apply(x)
    return x


gradsmith_inputs = {"repeated": lambda: (torch.randn(4, dtype=torch.float64, requires_grad=True),)}
"""
GOOD = """
import torch


class Spike(torch.autograd.Function):
    @staticmethod
    def forward(ctx, v):
        ctx.save_for_backward(v)
        return torch.sin(v)

    @staticmethod
    def backward(ctx, grad_output):
        (v,) = ctx.saved_tensors
        return grad_output * torch.cos(v)


def repeated(x, steps=24):
    for _ in range(steps):
        x = Spike.apply(x)
    return x


gradsmith_inputs = {"repeated": lambda: (torch.randn(4, dtype=torch.float64, requires_grad=True),)}
"""

_CALLS = 8


def profile(profile: Profile) -> Iterator[Finding]:
    for call in profile.function_calls():
        if not call.setup_context or not profile.best_s:
            continue
        share = min(call.count * profile.machine.setup_context_s / profile.best_s, 0.9)
        if call.count < _CALLS and share < 0.3:
            continue
        yield profile.finding(
            call.site,
            f"{call.name} is called {call.count} times at {profile.place(call.site)}, and its setup_context alone takes {share:.0%} of the time "
            f"({profile.machine.setup_context_s * 1e6:.0f} us a call).",
            advice="Take ctx as forward's first argument instead of setup_context, or do the work of several calls in one.",
            share=share,
            gain=profile.gain(share * profile.total_s),
            severity=None if call.count >= _CALLS else "info",
            evidence={"calls": call.count},
        )
