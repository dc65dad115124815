"""a matrix product that autocast changes in forward, but not in backward

What it finds
-------------
A Function that multiplies matrices (or convolves) its inputs in forward, and its grad_output with a saved input in
backward, without `custom_fwd` and `custom_bwd` or a cast of its own, in a project that uses autocast.

Why it matters
--------------
Under autocast the product in forward runs in half precision, so grad_output arrives in half precision; backward runs
without autocast, and its product of a half grad_output with a float32 saved weight raises. Measured on torch 2.13:
"expected m1 and m2 to have the same dtype, but got: c10::BFloat16 != float".

Known problems
--------------
Only files that were linted together count as the project. A cast anywhere in the Function silences this rule.

References
----------
https://docs.pytorch.org/docs/stable/notes/amp_examples.html#autocast-and-custom-autograd-functions
Measured on torch 2.13: see above.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradsmith.findings import Finding
from gradsmith.source.knowledge import LINEAR_ALGEBRA

if TYPE_CHECKING:
    from gradsmith.source import FunctionModel, Method

CODE = "GS602"
SEVERITY = "warning"
EXPLAINS = ()
FIXABLE = False
BAD = """
import torch


class Project(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x @ weight

    @staticmethod
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        grad_x = grad_output @ weight.t() if ctx.needs_input_grad[0] else None
        grad_weight = x.t() @ grad_output if ctx.needs_input_grad[1] else None
        return grad_x, grad_weight


def train_step(x, weight):
    with torch.autocast("cuda", dtype=torch.bfloat16):
        return Project.apply(x, weight).sum()


gradsmith_inputs = {
    "Project": lambda: (
        torch.randn(4, 3, dtype=torch.float64, requires_grad=True),
        torch.randn(3, 2, dtype=torch.float64, requires_grad=True),
    )
}
"""
GOOD = (
    BAD.replace("import torch\n", "import torch\nfrom torch.amp import custom_bwd, custom_fwd\n", 1)
    .replace("    def forward", '    @custom_fwd(device_type="cuda")\n    def forward')
    .replace("    def backward", '    @custom_bwd(device_type="cuda")\n    def backward')
)
_AUTOCAST = r"\bautocast\("
_CASTS = frozenset(
    [
        "to",
        "type",
        "type_as",
        "float",
        "half",
        "bfloat16",
        "double",
        "is_autocast_enabled",
        "get_autocast_dtype",
        "autocast",
    ]
)


def lint(function: FunctionModel) -> Iterator[Finding]:
    forward, backward, project = function.forward, function.backward, function.file.project
    if forward is None or backward is None or forward.inherited or not function.has_gradient or project is None:
        return
    if function.kind != "function" or any(_is_prepared(m) for m in (*function.before, backward)):
        return
    product = _product(forward, {"input"})
    again = _product(backward, {"grad_output"}, {"saved"})
    if product is None or again is None or not _is_returned(forward, product) or not project.matching(_AUTOCAST):
        return
    yield function.at(
        again,
        f"{function.name}.{backward.name} multiplies grad_output with a saved tensor: under autocast, which this project uses, "
        "their dtypes differ and it raises.",
        advice='Decorate forward with `@torch.amp.custom_fwd(device_type="cuda")` and backward with '
        '`@torch.amp.custom_bwd(device_type="cuda")`.',
    )


def _is_prepared(method: Method) -> bool:
    """Decorated with something we do not know (or with custom_fwd), or casts somewhere: the author takes care."""
    if any(
        d.rpartition(".")[2] not in ("staticmethod", "classmethod", "once_differentiable") for d in method.decorators
    ):
        return True
    if any(isinstance(n, ast.Attribute) and n.attr in ("dtype", "autocast") for n in method.nodes):
        return True
    return any(c.op in _CASTS or (c.dotted or "").rpartition(".")[2] in _CASTS for c in method.calls)


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
        if method.op(node) not in LINEAR_ALGEBRA:
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
