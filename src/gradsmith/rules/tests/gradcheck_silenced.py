"""a gradcheck that can neither raise nor fail the test

What it finds
-------------
`gradcheck(..., raise_exception=False)` whose result is printed, logged or branched on, but neither asserted nor returned.

Why it matters
--------------
The test passes with a wrong gradient; the message that says which element is wrong, and by how much, is lost as well.

Known problems
--------------
A function that hands the result on in a list or a dictionary is not reported.

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

CODE = "GS903"
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
    print("gradient right:", gradcheck(Cube.apply, (x,), raise_exception=False))


gradsmith_inputs = {"Cube": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
"""
GOOD = BAD.replace(
    '    print("gradient right:", gradcheck(Cube.apply, (x,), raise_exception=False))',
    "    assert gradcheck(Cube.apply, (x,))",
)


def lint_file(file: FileModel) -> Iterator[Finding]:
    for check in gradchecks(file):
        if check.is_silenced and becomes(check) == "used":
            yield file.at(
                check.node,
                f"{check.method.name} looks at {check.name}(..., raise_exception=False) but does not fail when it is False.",
                advice="Remove `raise_exception=False`: gradcheck then raises, and says which element is wrong.",
            )
