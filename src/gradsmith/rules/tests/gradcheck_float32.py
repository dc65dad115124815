"""gradcheck on float32 inputs

What it finds
-------------
`gradcheck` or `gradgradcheck` on tensors made in float32 (the default of `torch.randn`), in a file that does not change the
default dtype.

Why it matters
--------------
The finite differences of gradcheck use a step of 1e-6, which float32 cannot resolve: a right gradient fails. People then
loosen the tolerances until it passes, and so does a wrong one. Measured on torch 2.13: `gradcheck(torch.tanh, float32)` failed
50 times of 50; a gradient that is 1 % off passed 50 times of 50 with eps=1e-3, atol=1e-2, rtol=1e-1.

Known problems
--------------
Kernels that exist for float32 only cannot be checked this way: use `gradsmith check`, whose tolerance is the measured noise.

References
----------
https://docs.pytorch.org/docs/stable/generated/torch.autograd.gradcheck.gradcheck.html
Measured on torch 2.13: see above.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradsmith.findings import Finding
from gradsmith.source.gradchecks import gradchecks, made

if TYPE_CHECKING:
    from gradsmith.source import FileModel

CODE = "GS901"
SEVERITY = "warning"
EXPLAINS = ()
FIXABLE = True
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
    x = torch.randn(4, 3, requires_grad=True)
    assert gradcheck(Cube.apply, (x,))


gradsmith_inputs = {"Cube": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
"""
GOOD = BAD.replace(
    "(4, 3, requires_grad=True)",
    "(4, 3, dtype=torch.float64, requires_grad=True)",
)


def lint_file(file: FileModel) -> Iterator[Finding]:
    from gradsmith.source.edits import replace

    if file.mentions("set_default_dtype", "set_default_tensor_type"):
        return
    for check in gradchecks(file):
        for node in check.inputs or ():
            found = made(check, node)
            if found is None or found.dtype != "float32" or not found.requires_grad:
                continue
            text = file.source_of(found.factory)
            explicit = any(k.arg == "dtype" for k in found.factory.keywords)
            yield file.at(
                found.factory,
                f"{check.method.name} runs {check.name} on a float32 tensor: finite differences need float64.",
                advice="Make the inputs with `dtype=torch.float64`.",
                edits=[]
                if explicit
                else [replace(file, found.factory, f"{text[:-1].rstrip().rstrip(',')}, dtype=torch.float64)")],
                applicability="safe",
            )
