"""the result of a gradcheck that cannot raise is thrown away

What it finds
-------------
`gradcheck(..., raise_exception=False)` as a statement of its own, or assigned to a name that nobody reads.

Why it matters
--------------
With `raise_exception=False` a wrong gradient only shows in the returned False. A test that drops it passes whatever the
gradient is.

Known problems
--------------
Without `raise_exception=False` a dropped result is fine, for gradcheck raises: such calls are not reported.

References
----------
https://docs.pytorch.org/docs/stable/generated/torch.autograd.gradcheck.gradcheck.html
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradsmith.findings import Finding
from gradsmith.source.gradchecks import becomes, gradchecks

if TYPE_CHECKING:
    from gradsmith.source import FileModel

CODE = "GS902"
SEVERITY = "warning"
EXPLAINS = ()
FIXABLE = False
TRIGGERS = ("gradcheck",)
BAD = """
import torch
from torch.autograd import gradcheck


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * 3 * x * x


def test_cube():
    x = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    gradcheck(Cube.apply, (x,), raise_exception=False)


gradsmith_inputs = {"Cube": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
"""
GOOD = BAD.replace(
    "    gradcheck(Cube.apply, (x,), raise_exception=False)",
    "    assert gradcheck(Cube.apply, (x,))",
)


def lint_file(file: FileModel) -> Iterator[Finding]:
    for check in gradchecks(file):
        if check.is_silenced and becomes(check) in ("dropped", "unread"):
            yield file.at(
                check.node,
                f"{check.method.name} drops the result of {check.name}(..., raise_exception=False): it passes whatever the gradient "
                "is.",
                advice="Remove `raise_exception=False`, or assert the result.",
            )
