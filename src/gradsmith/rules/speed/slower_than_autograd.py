"""the Function is slower than its own forward under autograd

What it finds
-------------
The forward of a Function, run as plain PyTorch with autograd making the gradient, gives the same results in less time, and
does less work: fewer operations or fewer bytes.

Why it matters
--------------
A hand-written backward is code to maintain; when it is slower as well there is no reason left for it. Measured on torch 2.13,
one thread, LayerNorm of 256 x 256 with a hand-written backward 0.43 ms, F.layer_norm under autograd 0.17 ms.

Known problems
--------------
A Function that saves memory at the price of time is reported as information only. The overhead of calling a Function, three
to eight microseconds, alone is never reported.

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

CODE = "GS506"
SEVERITY = "info"
EXPLAINS = ()
FIXABLE = False
BAD = """
import torch


class Softmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = torch.softmax(x, dim=1)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad_output):
        (y,) = ctx.saved_tensors
        scaled = grad_output * y
        total = scaled.sum(dim=1, keepdim=True)
        first = torch.log(torch.exp(scaled))
        second = torch.log(torch.exp(y * total))
        return first - second


gradsmith_inputs = {"Softmax": lambda: (torch.randn(64, 512, dtype=torch.float64, requires_grad=True),)}
"""
GOOD = """
import torch


class Softmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = torch.softmax(x, dim=1)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad_output):
        (y,) = ctx.saved_tensors
        return torch._softmax_backward_data(grad_output, y, 1, y.dtype)


gradsmith_inputs = {"Softmax": lambda: (torch.randn(64, 512, dtype=torch.float64, requires_grad=True),)}
"""

_SLOWER = 1.25  # the lower end of the confidence interval; less may be the overhead of the call


def profile(profile: Profile) -> Iterator[Finding]:
    plain = profile.plain
    if plain is None or not plain.slower.low > _SLOWER:
        return
    written = profile.recording.written("forward") + profile.recording.written("backward")
    ops = profile.forward_ops + profile.backward_ops
    if written <= 1.1 * plain.written_bytes and ops <= plain.ops:
        return
    thrifty = profile.saved_bytes < 0.8 * plain.saved_bytes
    memory = f", though it saves {plain.saved_bytes - profile.saved_bytes:,} bytes of memory" if thrifty else ""
    yield profile.finding(
        None,
        f"{profile.name} takes {plain.slower.value:.1f} times as long as the same forward without the Function, differentiated by "
        f"autograd ({ops} operations against {plain.ops}){memory}.",
        advice="Where memory is not scarce, call what forward computes directly and let autograd differentiate it."
        if thrifty
        else "You do not need this Function: call what forward computes directly and let autograd differentiate it.",
        share=1 - 1 / plain.slower.value,
        gain=plain.slower.value,
        severity="info" if thrifty else None,
        evidence={"slower": plain.slower.value, "low": plain.slower.low, "high": plain.slower.high},
    )
