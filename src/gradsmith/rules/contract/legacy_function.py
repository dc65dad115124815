"""A Function of the old style: it keeps its options on self

What it finds
-------------
A Function whose `__init__` stores values on self and whose forward or backward, not static, reads them there.

Why it matters
--------------
PyTorch removed this style. `Scale(2.0)(x)` raises "Legacy autograd function with non-static forward method is
deprecated"; `Scale.apply(x)` calls forward with a context on which `__init__` never stored anything, and raises
AttributeError. There is no way left to call the class, and so nothing of it can be run or verified.

Known problems
--------------
A class whose methods are not static but read nothing that `__init__` set works through `apply`: that is `not-static`.

References
----------
https://docs.pytorch.org/docs/stable/notes/extending.html
https://github.com/pytorch/pytorch/pull/22922: non-static forward raises.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradsmith.findings import Finding

if TYPE_CHECKING:
    from gradsmith.source import FunctionModel

CODE = "GS124"
SEVERITY = "error"
EXPLAINS = (
    *("not-static", "forward-raised", "backward-raised", "unused-save", "none-for-tensor", "return-count"),
    "missing-apply",  # `Fn(2.0)(x)` is how the style is called
)
BAD = """
import torch


class Scale(torch.autograd.Function):
    def __init__(self, factor):
        self.factor = factor

    def forward(self, x):
        return x * self.factor

    def backward(self, grad_output):
        return grad_output * self.factor


gradsmith_inputs = {"Scale": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
"""
GOOD = """
import torch


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.factor = factor
        return x * factor

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * ctx.factor, None


gradsmith_inputs = {"Scale": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True), 2.0)}
"""


def lint(function: FunctionModel) -> Iterator[Finding]:
    from gradsmith.source.legacy import kept_on_self

    if kept := kept_on_self(function):
        names = ", ".join(f"self.{name}" for name in kept)
        yield function.at(
            function.node,
            f"{function.name} is a Function of the old style: it keeps {names} on the object that __init__ builds, and "
            f"PyTorch no longer calls such an object.",
            advice="Make forward and backward static methods with ctx as their first parameter, pass what __init__ took to "
            f"apply (`{function.name}.apply(x, ...)`), keep it on ctx, and return None for it in backward.",
        )
