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
https://github.com/pytorch/pytorch/issues/172798 (`with torch.device(...)` around the call does not reach backward)
https://github.com/Lightning-AI/pytorch-lightning/issues/17299
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradsmith.findings import Finding
from gradsmith.source import knowledge as know
from gradsmith.source.creation import Creation, creations, with_options
from gradsmith.source.walk import nodes_under

if TYPE_CHECKING:
    from gradsmith.source import FunctionModel, Method, Param

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
    if any(_is_for_the_host(method) for method in function.before):
        return
    for method in methods:
        if _runs_on_the_host(method):
            continue
        anchor = _anchor(method)
        for creation in creations(method):
            met = _meets(function, method, creation)
            if met is None or method.in_nested_function(creation.node):
                continue
            like = anchor or _beside(method, creation)
            if like is None:
                continue
            yield function.at(
                creation.node,
                f"{function.name}.{method.name} makes a tensor with torch.{creation.op} on the CPU, and {met}: "
                "with inputs on a GPU this raises RuntimeError.",
                advice=f"Pass `device={like}.device`"
                + (
                    "."
                    if creation.has_dtype or creation.counts
                    else f", and `dtype={like}.dtype`, so that float64 stays float64."
                ),
                edits=[with_options(method, creation, like)],
                unsafe="the device or the dtype of this tensor may differ from before",
            )


def _is_for_the_host(method: Method) -> bool:
    """`x.detach().numpy()` of an input: no tensor on a GPU ever gets further than this."""
    arrays = (c.node.func.value for c in method.calls if c.op == "numpy" and isinstance(c.node.func, ast.Attribute))
    for array in arrays:
        moved = any(
            isinstance(n, ast.Attribute) and n.attr in ("cpu", "to") for n in nodes_under(method.resolve(array))
        )
        if not moved and any(s.owner == "input" for s in method.sources(array)):
            return True
    return False


def _runs_on_the_host(method: Method) -> bool:
    """Code that goes through NumPy or `.cpu()` lives on the host on purpose."""
    return any(c.is_numpy or c.op in ("cpu", "tolist") for c in method.calls)


def _anchor(method: Method) -> str | None:
    """A tensor of the caller that is at hand under its own name."""
    rebound = {b.name for b in method.flow.bindings if b.how != "param"}
    sure = [p for p in method.positional if p.name not in rebound and _is_owned(method, p)]
    return sure[0].name if sure else None


def _beside(method: Method, creation: Creation) -> str | None:
    """A tensor of the caller in the same statement, which may be about to lose its name: `g = g + torch.zeros(3)`."""
    for node in nodes_under(method.statement(creation.node)):
        param = method.param_of(node) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) else None
        if param is not None and param.kind == "positional" and _is_owned(method, param):
            return param.name
    return None


def _is_owned(method: Method, param: Param) -> bool:
    return param.role == "grad_output" or (param.role == "input" and _is_tensor(method, param.name))


def _is_tensor(method: Method, name: str) -> bool:
    """By what is known of it, or because its shape or device is asked for."""
    for node in method.nodes:
        if not (isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load)):
            continue
        around = method.file.parents.get(node)
        if method.value(node).is_tensor or (isinstance(around, ast.Attribute) and around.attr in know.TENSOR_SIGNS):
            return True
    return False


def _meets(function: FunctionModel, method: Method, creation: Creation) -> str | None:
    """How the new tensor meets one of the caller's; None where that is not certain."""
    for use in (use for value in _carried(method, creation.node) for use in [value, *_uses(method, value)]):
        parent = method.file.parents.get(use)
        if (
            (
                isinstance(parent, ast.Return)
                or (isinstance(parent, ast.Tuple) and isinstance(method.file.parents.get(parent), ast.Return))
            )
            and method.name == "backward"
            and function.has_gradient
            and not creation.counts
        ):
            return "returns it as a gradient"
        if isinstance(parent, ast.BinOp):
            other = parent.right if parent.left is use else parent.left
            if _comes_from_caller(method, other):
                return f"combines it with '{ast.unparse(other)}'"
        if isinstance(parent, ast.Call) and use in parent.args and method.op(parent) in know.ON_ONE_DEVICE:
            others = [a for a in _operands(parent) if a is not use]
            if met := next((a for a in others if _comes_from_caller(method, a)), None):
                return f"combines it with '{ast.unparse(met)}'"
        into = method.file.parents.get(parent) if isinstance(parent, ast.Attribute) else None
        filled = isinstance(parent, ast.Attribute) and parent.attr.rstrip("_") in know.FILLED
        if filled and isinstance(into, ast.Call) and into.func is parent:
            given = [*into.args, *(k.value for k in into.keywords)]
            if met := next((a for a in given if _comes_from_caller(method, a)), None):
                return f"fills it from '{ast.unparse(met)}'"
    return None


def _carried(method: Method, node: ast.expr) -> Iterator[ast.expr]:
    """The new tensor, and what plain arithmetic makes of it on the same device: `(torch.rand(n) < p).float() / p`."""
    yield node
    for _ in range(4):
        above = method.file.parents.get(node)
        if isinstance(above, ast.Attribute) and above.attr in know.SAME_PLACE:
            above = method.file.parents.get(above)
            if not (isinstance(above, ast.Call) and not above.args and not above.keywords):
                return
        elif not isinstance(above, (ast.Compare, ast.BinOp, ast.UnaryOp)):
            return
        node = above
        yield node


def _operands(node: ast.Call) -> list[ast.expr]:
    receiver = [node.func.value] if isinstance(node.func, ast.Attribute) else []
    return [*receiver, *node.args]


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
    owned = method.sources(node)
    if owned:
        sure = method.value(node).is_tensor or any(s.owner in ("grad_output", "saved") for s in owned)
        return sure or any(s.owner == "input" and _is_tensor(method, s.name) for s in owned)
    node = method.resolve(node)
    if isinstance(node, ast.BinOp):
        return any(_comes_from_caller(method, side, depth + 1) for side in (node.left, node.right))
    if isinstance(node, ast.Call) and method.op(node) is not None:
        return any(_comes_from_caller(method, p, depth + 1) for p in _operands(node))
    return False
