"""forward raises on the inputs it was given.

What it finds
-------------
The subject's forward raised an exception, so nothing could be verified. The message repeats the exception in one line
and says with which shapes forward was called.

Why it matters
--------------
A gradient that was never computed was never checked. The usual cause is a declared example that no longer fits the
signature, or a shape, dtype or device that forward does not take.

Known problems
--------------
The defect may be in the inputs rather than in forward; gradsmith cannot tell which was meant. A forward that asks for a
device this machine does not have, or for a process group that nobody started, is only remarked upon: nothing is proved.

References
----------
Inputs that do not fit are the first thing every user of a gradient checker meets; gradcheck shows the bare traceback
(https://github.com/pytorch/pytorch/pull/64444).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradsmith.findings import Finding

if TYPE_CHECKING:
    from gradsmith.lab import Lab

CODE = "GS005"
SEVERITY = "error"
OUTCOME = "forward raises"
STOPS = "everything"
REFUTES = False
EVENT = "forward"
DEMONSTRATION = "run"
BAD = """
import torch


class Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x @ weight

    @staticmethod
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        grad_x = grad_output @ weight.t() if ctx.needs_input_grad[0] else None
        grad_weight = x.t() @ grad_output if ctx.needs_input_grad[1] else None
        return grad_x, grad_weight


def example():
    x = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    return x, torch.randn(4, 5, dtype=torch.float64, requires_grad=True)


gradsmith_inputs = {"Product": example}
"""
GOOD = BAD.replace("torch.randn(4, 5", "torch.randn(3, 5")


def _others(lab: Lab) -> str:
    """Where these inputs come from, and how to give others."""
    mapping = f'gradsmith_inputs = {{"{lab.target.name}": lambda: (...)}}'
    if lab.inputs_from == "guessed":
        return f"gradsmith guessed these inputs. Declare some that forward accepts (`{mapping}` in this file)"
    if lab.inputs_from == "recorded":
        return f"These inputs were recorded. Record again, declare others (`{mapping}` in this file)"
    if lab.inputs_from == "declared":
        return "These inputs are declared beside the code (gradsmith_inputs or @gs.example_inputs). Change them so that they fit forward"
    return (
        "These inputs were passed to the check. Pass others (`--inputs`, or the arguments of gs.check) that fit forward"
    )


def probe(lab: Lab) -> Iterator[Finding]:
    from gradsmith.findings import one_line
    from gradsmith.lab import forward
    from gradsmith.lab.measure.memory import FreedMemory
    from gradsmith.lab.process import torch_says
    from gradsmith.lab.subject.standins import StandInUsed

    try:
        run = forward(lab.target, lab.arguments, seed=lab.settings.seed)
    except Exception as error:  # the user's forward may raise anything
        missing = torch_says.device_missing(error) or isinstance(error, StandInUsed)
        told = str(error) if isinstance(error, FreedMemory) else f"raises {one_line(error)}"
        yield lab.finding(
            f"{lab.target.name}.forward {told} (called with {lab.arguments.shapes()}).",
            raised=error,
            severity="info" if missing else None,  # what this machine lacks is no fault of the Function
            advice="Check it on a machine that has this package, device or process group."
            if missing
            else f"{_others(lab)}, or correct this line of forward.",
        )
        return
    if not run.outputs:
        yield lab.finding(f"{lab.target.name}.forward returns no tensor, so there is no gradient to check.")
