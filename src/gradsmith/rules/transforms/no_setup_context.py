"""forward takes ctx, so torch.func transforms refuse the Function

What it finds
-------------
A Function whose `forward(ctx, ...)` does two jobs, without a separate `setup_context`, and which is mentioned in a file
that uses `torch.func` or `functorch` (vmap, grad, jacrev, jvp ...).

Why it matters
--------------
`torch.func` can only transform Functions that compute in `forward(...)` and save in `setup_context(ctx, inputs, output)`.
Others raise: "In order to use an autograd.Function with functorch transforms ... it must override the setup_context
staticmethod". Measured on torch 2.13: raises for vmap, grad, jvp, jacrev and jacfwd.

Known problems
--------------
A Function with setup_context costs about three times as much per call (4.9 us against 15.6 us), so where nobody
transforms it the old style is the better one. This is information.

References
----------
https://docs.pytorch.org/docs/stable/notes/extending.func.html
Measured on torch 2.13: see above.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradsmith.findings import Finding

if TYPE_CHECKING:
    from gradsmith.source import FunctionModel

CODE = "GS601"
SEVERITY = "info"
EXPLAINS = ()
FIXABLE = False
BAD = """
import torch
from torch.func import grad


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * 3 * x**2


def slope(x):
    return grad(lambda v: Cube.apply(v).sum())(x)


gradsmith_inputs = {"Cube": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
"""
GOOD = """
import torch
from torch.func import grad


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(x):
        return x**3

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * 3 * x**2


def slope(x):
    return grad(lambda v: Cube.apply(v).sum())(x)


gradsmith_inputs = {"Cube": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
"""
_USES = r"(?m)^\s*(?:from|import)\s+(?:torch\.func|torch\._functorch|functorch)\b|\btorch\.(?:func\.\w|vmap\()|from torch import .*\bvmap\b"


def lint(function: FunctionModel) -> Iterator[Finding]:
    forward, project = function.forward, function.file.project
    if function.kind != "function" or forward is None or forward.inherited or forward.ctx is None:
        return
    if function.setup_context is not None or not function.has_gradient or project is None:
        return
    if not any(function.name in file.text for file in project.matching(_USES)):
        return
    yield function.at(
        forward.node,
        f"{function.name}.forward takes ctx: torch.func, which is used together with it, refuses such Functions.",
        advice="Write `forward(*inputs)` without ctx, and save in `setup_context(ctx, inputs, output)`; set "
        "`generate_vmap_rule = True` if it is made of torch operations.",
    )
