"""backward raises, although forward ran.

What it finds
-------------
forward succeeded, and asking for the gradients raised. The message repeats PyTorch's or your own error in one line.
Where another rule knows the cause (a wrong number of gradients, a shape that does not fit), that rule leads and this
one is listed under it.

Why it matters
--------------
The error appears only once somebody trains with the Function, often far away from the code that caused it.

Known problems
--------------
A Function that refuses backward on purpose (nothing but a `raise`) is remarked upon: it has no gradient to verify. A
backward that asks for a device this machine does not have, or for a process group that nobody started, is a warning:
it proves nothing. One that calls a package which is not installed is remarked upon.

References
----------
https://github.com/getkeops/keops/issues/327, https://github.com/huawei-noah/AdderNet/issues/21
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradsmith.findings import Finding

if TYPE_CHECKING:
    from gradsmith.lab import Lab

CODE = "GS006"
SEVERITY = "error"
OUTCOME = "raises"
UNPROVEN = "backward raises here, and so nothing was measured"
STOPS = "measuring"
EVENT = "backward"
DEMONSTRATION = "run"
BAD = """
import torch


class Norm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.square().sum(1).sqrt()

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        length = x.square().sum(1).sqrt()
        return x * (grad_output / length)


gradsmith_inputs = {"Norm": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
"""
GOOD = BAD.replace("x * (grad_output / length)", "x * (grad_output / length).unsqueeze(1)")


def probe(lab: Lab) -> Iterator[Finding]:
    from gradsmith.findings import one_line
    from gradsmith.lab.measure.memory import FreedMemory
    from gradsmith.lab.process import torch_says
    from gradsmith.lab.subject.standins import StandInUsed

    run = lab.run()
    if not run.differentiable:
        return
    try:
        run.gradients(run.normal(lab.generator()))
    except Exception as error:  # the user's backward may raise anything
        absent = isinstance(error, StandInUsed)  # a package that is not installed, which forward did without
        missing = absent or torch_says.device_missing(error)
        refuses = lab.target.function is not None and _refuses(lab.target.function)
        told = str(error) if isinstance(error, FreedMemory) else f"raises {one_line(error)}"
        yield lab.finding(
            f"{lab.target.name}.backward {told} (forward was called with {lab.arguments.shapes()}).",
            raised=error,
            # Neither what this machine lacks nor what was never promised is a fault of the Function.
            severity="warning" if missing and not absent else "info" if absent or refuses else None,
            advice="Check it on a machine that has this package, device or process group; or make new tensors on the device of "
            "the inputs."
            if missing
            else "Correct this line of backward; `gradsmith check --write-test FILE` writes a test that runs this example.",
        )


def _refuses(function: type) -> bool:
    """backward cannot return: it always comes to a `raise`, and to no return before. Whoever wrote that means it."""
    from gradsmith.source import model_of

    model = model_of(function)
    if model is None or model.backward is None:
        return False
    body = model.backward.node.body
    raised = next((place for place, statement in enumerate(body) if isinstance(statement, ast.Raise)), None)
    before = body[:raised] if raised is not None else []
    return raised is not None and not any(isinstance(n, ast.Return) for part in before for n in ast.walk(part))
