"""a tensor is made on the default device, next to tensors that may live elsewhere

What it finds
-------------
`torch.zeros(n)`, `torch.eye(n)`, `torch.arange(n)` ... without `device=` in forward or backward, where the result is
returned as a gradient or meets a tensor of the caller in an operation.

Why it matters
--------------
It works on the CPU and in float32, which is what the tests use. On a GPU it raises ("Expected all tensors to be on the
same device"), and with float64 or bfloat16 inputs it changes the dtype of what follows, or makes gradcheck fail for
want of precision.

Known problems
--------------
A tensor that is moved later in another function is not seen. Scalars (`torch.tensor(2.0)`) mix with any device and are
left alone, and so is code under `with torch.device(...)`.

References
----------
Measured over 800 Functions of 27 public projects: 24 make such tensors.
https://docs.pytorch.org/docs/stable/notes/cuda.html
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradsmith.findings import Finding
from gradsmith.source.creation import Creation, creations, with_options

if TYPE_CHECKING:
    from gradsmith.source import FunctionModel, Method

CODE = "GS305"
SEVERITY = "warning"
EXPLAINS = ()
FIXABLE = True
BAD = """
import torch


class AddIdentity(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x @ x + torch.eye(x.shape[0])

    @staticmethod
    def backward(ctx, grad_output):
        raise NotImplementedError("only the forward matters here")


gradsmith_inputs = {"AddIdentity": lambda: (torch.randn(3, 3, dtype=torch.float64, requires_grad=True),)}
"""
GOOD = """
import torch


class AddIdentity(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x @ x + torch.eye(x.shape[0], device=x.device, dtype=x.dtype)

    @staticmethod
    def backward(ctx, grad_output):
        raise NotImplementedError("only the forward matters here")


gradsmith_inputs = {"AddIdentity": lambda: (torch.randn(3, 3, dtype=torch.float64, requires_grad=True),)}
"""


def lint(function: FunctionModel) -> Iterator[Finding]:
    methods = [m for m in (*function.before, function.backward) if m is not None and not m.inherited]
    for method in methods:
        if _runs_on_the_host(method):
            continue
        like = _anchor(method)
        for creation in creations(method):
            met = _meets(function, method, creation)
            if met is None or like is None or method.in_nested_function(creation.node):
                continue
            yield function.at(
                creation.node,
                f"{function.name}.{method.name} makes a tensor with torch.{creation.op} on the default device, and {met}: "
                "on a GPU this raises.",
                advice=f"Write `device={like}.device` (and `dtype={like}.dtype`), or `{like}.new_zeros(...)`.",
                edits=[with_options(method, creation, like)],
                applicability="unsafe",
            )


def _runs_on_the_host(method: Method) -> bool:
    """Code that goes through NumPy or `.cpu()` lives on the host on purpose."""
    return any(c.is_numpy or c.op in ("cpu", "tolist") for c in method.calls)


def _anchor(method: Method) -> str | None:
    """A tensor of the caller that is at hand under its own name."""
    rebound = {b.name for b in method.flow.bindings if b.how != "param"}
    fitting = [p for p in method.positional if p.role in ("input", "grad_output") and p.name not in rebound]
    sure = [p for p in fitting if p.role == "grad_output" or _is_tensor(method, p.name)]
    return sure[0].name if sure else None


def _is_tensor(method: Method, name: str) -> bool:
    uses = (n for n in method.nodes if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load))
    return any(method.value(n).is_tensor for n in uses)


def _meets(function: FunctionModel, method: Method, creation: Creation) -> str | None:
    """How the new tensor meets one of the caller's; None where that is not certain."""
    for use in [creation.node, *_uses(method, creation.node)]:
        parent = method.file.parents.get(use)
        if isinstance(parent, ast.Return) or (
            isinstance(parent, ast.Tuple) and isinstance(method.file.parents.get(parent), ast.Return)
        ):
            if method.name == "backward" and function.has_gradient and not creation.counts:
                return "returns it as a gradient"
        if isinstance(parent, ast.BinOp):
            other = parent.right if parent.left is use else parent.left
            if method.value(other).is_tensor and _comes_from_caller(method, other):
                return f"combines it with '{ast.unparse(other)}'"
    return None


def _uses(method: Method, node: ast.expr) -> list[ast.Name]:
    """Loads of the name the tensor is assigned to, where it can be nothing else."""
    return [
        n
        for n in method.nodes
        if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load) and n is not node and method.resolve(n) is node
    ]


def _comes_from_caller(method: Method, node: ast.expr, depth: int = 0) -> bool:
    """Some input, grad_output or saved tensor is in it, directly or through operations that keep its device."""
    if depth > 6:
        return False
    if method.sources(node):
        return True
    node = method.resolve(node)
    if isinstance(node, ast.BinOp):
        return any(_comes_from_caller(method, side, depth + 1) for side in (node.left, node.right))
    if isinstance(node, ast.Call) and method.op(node) is not None:
        parts = [*node.args, *([node.func.value] if isinstance(node.func, ast.Attribute) else [])]
        return any(method.value(p).is_tensor and _comes_from_caller(method, p, depth + 1) for p in parts)
    return False
