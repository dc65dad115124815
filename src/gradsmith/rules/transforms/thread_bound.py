"""backward works only in the thread that ran forward.

What it finds
-------------
backward is run in a thread of its own, and two threads run forward and backward at the same time. The results have to be
those of one thread.

Why it matters
--------------
The autograd engine runs backward in another thread for every device but the CPU, and DataParallel runs forward in
several. What forward leaves in a threading.local is not there.

Known problems
--------------
Races that depend on timing may not show.

References
----------
https://github.com/pytorch/pytorch/issues/33800, https://github.com/pytorch/pytorch/issues/16947
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradsmith.findings import Finding

if TYPE_CHECKING:
    from gradsmith.lab import Lab

CODE = "GS610"
SEVERITY = "error"
DEMONSTRATION = "thread"
LEVEL = "standard"
BAD = """
import threading

import torch

KEPT = threading.local()


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        KEPT.factor = 2.0
        return x**2

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * getattr(KEPT, "factor", 1.0) * x


gradsmith_inputs = {"Square": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
"""
GOOD = (
    BAD.replace('getattr(KEPT, "factor", 1.0)', "2.0")
    .replace("        KEPT.factor = 2.0\n", "")
    .replace("KEPT = threading.local()\n\n\n", "\n")
    .replace("import threading\n\n", "")
)


def probe(lab: Lab) -> Iterator[Finding]:
    from gradsmith.lab.conditions.environment import backward_elsewhere, two_threads
    from gradsmith.rules.transforms import used_outside

    for name, outcome in (
        ("with backward in another thread", backward_elsewhere(lab)),
        ("in two threads", two_threads(lab)),
    ):
        if outcome.state == "fails":
            use = used_outside(lab, "thread", "state") if outcome.differs else None
            yield lab.finding(
                f"{lab.target.name} {name} {outcome.than('a plain call')}",
                line=use.line if use is not None else lab.line_among(outcome.frames),
                advice="Keep what backward needs on ctx, not "
                + (f"in `{use.shown}`" if use is not None else "in a global or a threading.local")
                + ": PyTorch may run backward in a thread of its own.",
            )
            return
