"""a failing gradcheck is caught and forgotten

What it finds
-------------
`gradcheck` inside `try` whose `except` catches its error (bare, Exception, RuntimeError, GradcheckError, AssertionError) and
neither raises nor fails the test.

Why it matters
--------------
gradcheck says that a gradient is wrong by raising. The test catches it, perhaps prints it, and passes.

Known problems
--------------
A handler that calls an unknown function is left alone: it may fail the test.

References
----------
https://docs.pytorch.org/docs/stable/generated/torch.autograd.gradcheck.gradcheck.html
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradsmith.findings import Finding
from gradsmith.source.gradchecks import Gradcheck, gradchecks
from gradsmith.source.walk import nodes_under

if TYPE_CHECKING:
    from gradsmith.source import FileModel

CODE = "GS905"
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
    try:
        gradcheck(Cube.apply, (x,))
    except RuntimeError as error:
        print("gradcheck failed", error)


gradsmith_inputs = {"Cube": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
"""
GOOD = BAD.replace(
    '    try:\n        gradcheck(Cube.apply, (x,))\n    except RuntimeError as error:\n        print("gradcheck failed", error)\n',
    "    gradcheck(Cube.apply, (x,))\n",
)

_CATCHES = frozenset(("Exception", "BaseException", "RuntimeError", "GradcheckError", "AssertionError"))
_HARMLESS = frozenset(
    ("print", "str", "repr", "format", "warn", "warning", "info", "debug", "error", "exception", "print_exc")
)


def lint_file(file: FileModel) -> Iterator[Finding]:
    for check in gradchecks(file):
        handler = _swallowing(check)
        if handler is not None:
            yield file.at(
                handler,
                f"{check.method.name} catches what {check.name} raises and goes on: a wrong gradient passes.",
                advice="Remove the try, or raise again after printing.",
            )


def _swallowing(check: Gradcheck) -> ast.ExceptHandler | None:
    child: ast.AST = check.node
    for parent in check.method.ancestors(check.node):
        if isinstance(parent, ast.Try) and child in parent.body and not parent.finalbody and not parent.orelse:
            for handler in parent.handlers:
                if _catches(check, handler):
                    return handler if _goes_on(handler) else None
        child = parent
    return None


def _catches(check: Gradcheck, handler: ast.ExceptHandler) -> bool:
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(k is None or (check.method.dotted(k) or "").rpartition(".")[2] in _CATCHES for k in kinds)


def _goes_on(handler: ast.ExceptHandler) -> bool:
    """Nothing in it but printing: no raise, no return, no flag that somebody may look at."""
    for node in (n for s in handler.body for n in nodes_under(s)):
        if isinstance(node, (ast.Raise, ast.Return, ast.Assert, ast.Assign, ast.AugAssign, ast.Yield)):
            return False
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name not in _HARMLESS:
                return False
    return True
