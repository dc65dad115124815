"""tolerances so wide that a wrong gradient passes

What it finds
-------------
A literal `atol` of 0.01 or more, or `rtol` of 0.1 or more, in a call of gradcheck (the defaults are 1e-5 and 1e-3).

Why it matters
--------------
Gradients of size one with an error of several per cent pass. Measured on torch 2.13: a gradient that is 1 % off passes with
`atol=0.1` in float64, and 50 times of 50 in float32 with eps=1e-3, atol=1e-2, rtol=1e-1.

Known problems
--------------
Where only float32 or bfloat16 can be run there may be no better tolerance for gradcheck: `gradsmith check` measures the noise
instead.

References
----------
https://docs.pytorch.org/docs/stable/generated/torch.autograd.gradcheck.gradcheck.html
Measured on torch 2.13: see above.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradsmith.findings import Finding
from gradsmith.source.gradchecks import gradchecks

if TYPE_CHECKING:
    from gradsmith.source import FileModel

CODE = "GS904"
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
    assert gradcheck(Cube.apply, (x,), atol=0.1)


gradsmith_inputs = {"Cube": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
"""
GOOD = BAD.replace(
    ", atol=0.1)",
    ")",
)

_TOO_WIDE = {"atol": 1e-2, "rtol": 1e-1}


def lint_file(file: FileModel) -> Iterator[Finding]:
    for check in gradchecks(file):
        for name, limit in _TOO_WIDE.items():
            value = check.number(name)
            if value is not None and value >= limit:
                yield file.at(
                    check.option(name) or check.node,
                    f"{check.method.name} runs {check.name} with {name}={value:g}: a gradient that is several per cent off passes.",
                    advice="Use float64 inputs and the default tolerances, or `gradsmith check`, which measures the noise.",
                )
                break
