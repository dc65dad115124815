"""backward grows faster with the input than forward does

What it finds
-------------
Bytes written by backward grow with the square (or a higher power) of a dimension along which forward grows linearly. Found by
running at three sizes; bytes are counted, not timed, so the exponent is exact.

Why it matters
--------------
The gradient of a function costs a small multiple of the function itself; a backward that grows faster builds a Jacobian, or
fills a whole tensor per step. At four times the size it is four times as far behind. Measured on torch 2.13, one thread, softmax of 32 x 200,
forward and backward: 3.1 ms with the Jacobian, 0.15 ms without.

Known problems
--------------
Functions whose forward is a black box that hides its own work can look linear when they are not.

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

CODE = "GS512"
SEVERITY = "info"
EXPLAINS = ("slower-than-autograd", "materialised-broadcast")
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
        jacobian = torch.diag_embed(y) - y.unsqueeze(2) * y.unsqueeze(1)
        return torch.bmm(jacobian, grad_output.unsqueeze(2)).squeeze(2)


gradsmith_inputs = {"Softmax": lambda: (torch.randn(8, 64, dtype=torch.float64, requires_grad=True),)}
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
        scaled = grad_output * y
        return scaled - y * scaled.sum(dim=1, keepdim=True)


gradsmith_inputs = {"Softmax": lambda: (torch.randn(8, 64, dtype=torch.float64, requires_grad=True),)}
"""

_STEEP, _FLAT = 1.6, 1.25


def profile(profile: Profile) -> Iterator[Finding]:
    for growth in profile.growth:
        backward, forward = growth.exponent("backward_bytes"), growth.exponent("forward_traffic")  # reads, too
        if not (backward >= _STEEP and forward <= _FLAT) or len(growth.recordings) < 3:
            continue
        largest = growth.recordings[-1]
        lines: dict[tuple[str, int], int] = {}
        for event in largest.of("backward"):
            if event.site is not None:
                key = (event.site.path, event.site.line)
                lines[key] = lines.get(key, 0) + event.written_bytes
        if not lines:
            continue
        path, line = max(lines, key=lambda key: lines[key])
        mine = [e for e in profile.recording.of("backward") if e.site and (e.site.path, e.site.line) == (path, line)]
        if not mine:
            continue
        share = profile.share(mine)
        gain = profile.gain(profile.backward_s, min(profile.backward_s, profile.forward_s))
        yield profile.finding(
            mine[0].site,
            f"backward grows with {growth.label} to the power {backward:.1f}, forward to the power {forward:.1f}; "
            f"{profile.place(mine[0].site)} writes most of the bytes of backward ({share:.0%} of the run time at your size).",
            advice="Do not build the Jacobian, or a full-size tensor in each step. Compute the product of grad_output and the Jacobian "
            "directly, from sums and element-wise operations.",
            share=share,
            gain=gain,
            evidence={"forward": round(forward, 2), "backward": round(backward, 2), "dimension": growth.label},
        )
        return
