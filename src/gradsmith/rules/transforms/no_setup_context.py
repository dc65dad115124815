"""torch.func cannot use the Function, because forward takes ctx.

What it finds
-------------
torch.func.grad and vmap are tried. PyTorch refuses Functions whose forward takes ctx, and says so.

Why it matters
--------------
Per-sample gradients, ensembles and Jacobians through torch.func do not work with this Function. Nothing is wrong with it
otherwise; that is why this is `info`.

Known problems
--------------
None known.

References
----------
https://github.com/pytorch/pytorch/issues/90225, https://github.com/pytorch/pytorch/issues/91468
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradsmith.findings import Finding
from gradsmith.source.walk import once

if TYPE_CHECKING:
    from gradsmith.lab import Lab
    from gradsmith.source import FileModel, FunctionModel, Project
    from gradsmith.source.method import Method

CODE = "GS601"
SEVERITY = "info"
LEVEL = "deep"
BAD = """
import torch


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    def backward(ctx, grad_output):
        return 2 * grad_output


def slope(x):
    return torch.func.grad(lambda v: Double.apply(v).sum())(x)


gradsmith_inputs = {"Double": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
"""
GOOD = BAD.replace("forward(ctx, x)", "forward(x)").replace(
    "return 2 * x\n",
    "return 2 * x\n\n    @staticmethod\n    def setup_context(ctx, inputs, output):\n        pass\n",
)
ASKS = (".apply",)
# Plain words: an expression over the same files takes five times as long.
_USES = (
    "torch.func.", "from torch.func ", "import torch.func\n", "import torch.func ", "from functorch", "import functorch",
    "torch._functorch", "torch.vmap(", "import vmap", ", vmap\n",
)  # fmt: skip


def lint(function: FunctionModel) -> Iterator[Finding]:
    forward, project = function.forward, function.file.project
    if function.kind != "function" or forward is None or forward.inherited or forward.ctx is None:
        return
    if function.setup_context is not None or not function.has_gradient or project is None:
        return
    if not any(file.uses(function.name) for file in _users(project)):
        return
    yield function.at(
        forward.node,
        f"{function.name}.forward takes ctx as its first argument. This project uses torch.func, which "
        "raises RuntimeError for a Function without setup_context.",
        advice=f"{_moved(forward)} If forward and backward use only operations of torch, also write "
        "`generate_vmap_rule = True` in the class.",
    )


def _moved(forward: Method) -> str:
    if any(node.id == forward.ctx for node in forward.of(ast.Name)):
        return "Remove ctx from forward, and move the lines that use ctx into a static method `setup_context(ctx, inputs, output)`."
    return (
        "Remove ctx from forward, and add a static method `setup_context(ctx, inputs, output)` with only `pass` in it."
    )


@once
def _users(project: Project) -> list[FileModel]:
    """The files that use torch.func and some Function: whoever uses one calls its `apply`."""
    likely = [file for file in project.mentioning(*ASKS) if file.mentions("torch.func", "functorch", "vmap")]
    return [file for file in likely if file.mentions(*_USES)]


def probe(lab: Lab) -> Iterator[Finding]:
    from gradsmith.lab.conditions.functorch import func_grad

    outcome = func_grad(lab)
    if lab.target.function is not None and outcome.state == "not supported" and "setup_context" in outcome.detail:
        yield lab.finding(
            f"{lab.target.name} does not work under torch.func (grad, vmap, jacrev): forward takes ctx.",
            advice="Remove ctx from forward, and move the lines that use ctx into a static method "
            "`setup_context(ctx, inputs, output)`.",
        )
