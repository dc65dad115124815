"""The Function fails, or loses its gradient, under autocast.

What it finds
-------------
forward is run in float32 under CPU autocast (bfloat16), backward outside of it (as the documentation recommends) and inside.
An exception in backward, or a gradient that is off by more than a quarter, is reported. In the source: a matrix product of
grad_output with a saved tensor, without custom_fwd, custom_bwd or a cast, in a project that uses autocast: a warning where a
file that does so mentions the Function or its module, else a remark.

Why it matters
--------------
Inside forward, autocast turns matrix products into bfloat16 while saved inputs stay float32. backward then multiplies
tensors of two types, and raises in somebody's mixed-precision training.

Known problems
--------------
Only CPU autocast is tried here. Nobody may ever use the Function under autocast: an exception is `info`.

References
----------
https://github.com/pytorch/pytorch/issues/87979, https://github.com/state-spaces/mamba/issues/868
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from gradsmith.findings import Finding
from gradsmith.source import knowledge as know
from gradsmith.source.knowledge import LINEAR_ALGEBRA

if TYPE_CHECKING:
    from gradsmith.lab import Lab
    from gradsmith.source import FileModel, FunctionModel, Method

CODE = "GS602"
SEVERITY = "info"
LEVEL = "standard"
BAD = """
import torch


class MatMul(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a @ b

    @staticmethod
    def backward(ctx, grad_output):
        a, b = ctx.saved_tensors
        return grad_output @ b.t(), a.t() @ grad_output


def train_step(a, b):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return MatMul.apply(a, b).sum()


gradsmith_inputs = {"MatMul": lambda: (torch.randn(4, 3, requires_grad=True), torch.randn(3, 5, requires_grad=True))}
"""
GOOD = (
    BAD.replace(
        "    @staticmethod\n    def forward", '    @staticmethod\n    @custom_fwd(device_type="cpu")\n    def forward'
    )
    .replace(
        "    @staticmethod\n    def backward", '    @staticmethod\n    @custom_bwd(device_type="cpu")\n    def backward'
    )
    .replace("import torch\n", "import torch\nfrom torch.amp import custom_bwd, custom_fwd\n", 1)
)
_AUTOCAST = r"\bautocast\("


def lint(function: FunctionModel) -> Iterator[Finding]:
    forward, backward, project = function.forward, function.backward, function.file.project
    if forward is None or backward is None or forward.inherited or not function.has_gradient or project is None:
        return
    if function.kind != "function" or any(_is_prepared(m) for m in (*function.before, backward)):
        return
    product = _product(forward, {"input"})
    again = _product(backward, {"grad_output"}, {"saved"})
    if product is None or again is None or not _is_returned(forward, product):
        return
    files = project.matching(_AUTOCAST, "autocast(")
    if not files:
        return
    known = [file for file in files if file is function.file or _knows(file, function)]
    used = _use(function.file if function.file in files else (known or files)[0])
    yield function.at(
        again,
        f"{function.name}.{backward.name} multiplies grad_output with a saved tensor. Under autocast (used in {used.place}) "
        "their dtypes differ, and the product raises.",
        advice=f"Write `@torch.amp.custom_fwd(device_type={used.device})` below @staticmethod of forward, and "
        f"`@torch.amp.custom_bwd(device_type={used.device})` below that of backward.",
        severity="warning" if known else "info",
    )


def _knows(file: FileModel, function: FunctionModel) -> bool:
    """Whether a file mentions the Function or its module: what else trains in a project may be another model."""
    module = os.path.basename(function.file.path).removesuffix(".py")
    return file.uses(function.name) or file.uses(module)


class _Use(NamedTuple):
    place: str
    device: str


def _use(file: FileModel) -> _Use:
    """Where a file first enters autocast, and for which device."""
    found = re.search(_AUTOCAST, file.text)
    line = file.text.count("\n", 0, found.start()) + 1 if found is not None else 1
    said = re.search(r"autocast\(\s*(?:device_type\s*=\s*)?[\"'](\w+)[\"']", file.text)
    return _Use(f"{os.path.basename(file.path)}:{line}", f'"{said[1] if said is not None else "cuda"}"')


def _is_prepared(method: Method) -> bool:
    """Decorated with something we do not know (or with custom_fwd), or casts somewhere: the author takes care."""
    if any(
        d.rpartition(".")[2] not in ("staticmethod", "classmethod", "once_differentiable") for d in method.decorators
    ):
        return True
    if any(n.attr in ("dtype", "autocast") for n in method.of(ast.Attribute)):
        return True
    return any(
        c.op in know.ABOUT_PRECISION or (c.dotted or "").rpartition(".")[2] in know.ABOUT_PRECISION
        for c in method.calls
    )


def _is_returned(forward: Method, product: ast.AST) -> bool:
    """The product leaves forward as it is, or with a bias: its dtype is that of grad_output."""
    for found in forward.returns:
        value = forward.resolve(found.value) if found.value is not None else None
        if isinstance(value, ast.BinOp) and isinstance(value.op, (ast.Add, ast.Sub)):
            value = forward.resolve(value.left)
        if value is product:
            return True
    return False


def _product(method: Method, *owners: set[str]) -> ast.AST | None:
    """A matrix product with, for each set of owners, an operand that is theirs."""
    for node in method.nodes:
        if not isinstance(node, (ast.Call, ast.BinOp)) or method.op(node) not in LINEAR_ALGEBRA:
            continue
        if isinstance(node, ast.BinOp):
            operands = [node.left, node.right]
        elif isinstance(node, ast.Call):
            operands = [*node.args, *([node.func.value] if isinstance(node.func, ast.Attribute) else [])]
        else:
            continue
        found = [{s.owner for s in method.sources(o)} for o in operands]
        if all(any(own & wanted for own in found) for wanted in owners):
            return node
    return None


def probe(lab: Lab) -> Iterator[Finding]:
    from gradsmith.lab.conditions.environment import autocast_both, autocast_forward

    for where, outcome in (("around forward only", autocast_forward(lab)), ("around both", autocast_both(lab))):
        if outcome.state == "fails":
            yield lab.finding(
                f"{lab.target.name} under CPU autocast {where} {outcome.than('a plain call in float32')}",
                line=lab.line_among(outcome.frames),
                severity="warning" if outcome.differs else "info",
                advice="Decorate forward with @torch.amp.custom_fwd(device_type=...) and backward with custom_bwd.",
            )
            return
