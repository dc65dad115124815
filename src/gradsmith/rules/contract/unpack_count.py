"""backward unpacks more or fewer tensors than forward saved

What it finds
-------------
`a, b = ctx.saved_tensors` where every `save_for_backward` of forward saves another number of tensors,
`ctx.saved_tensors[2]` beyond the last one, and `x = ctx.saved_tensors` without a comma where `x` is then used as a tensor.
Saves and unpackings with a star are skipped, and so are Functions that hand ctx to other code.

Why it matters
--------------
The unpacking raises at the first backward (measured on torch 2.13): "not enough values to unpack (expected 3, got 2)".

Known problems
--------------
Where forward saves different numbers on different paths, only a count that fits none of them is reported.

References
----------
https://docs.pytorch.org/docs/stable/autograd.html#torch.autograd.function.FunctionCtx.save_for_backward
https://github.com/jcjohnson/pytorch-examples/issues/9 (what the number of targets means)
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradsmith.findings import Finding, plural

if TYPE_CHECKING:
    from gradsmith.source import FunctionModel, Method, Unpack

CODE = "GS103"
SEVERITY = "error"
EXPLAINS = ("backward-raised",)
FIXABLE = False
BAD = """
import torch


class Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x * y

    @staticmethod
    def backward(ctx, grad_output):
        x, y, z = ctx.saved_tensors
        return grad_output * y, grad_output * x


gradsmith_inputs = {
    "Product": lambda: tuple(torch.randn(4, 3, dtype=torch.float64, requires_grad=True) for _ in range(2))
}
"""
GOOD = """
import torch


class Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x * y

    @staticmethod
    def backward(ctx, grad_output):
        x, y = ctx.saved_tensors
        return grad_output * y, grad_output * x


gradsmith_inputs = {
    "Product": lambda: tuple(torch.randn(4, 3, dtype=torch.float64, requires_grad=True) for _ in range(2))
}
"""


def lint(function: FunctionModel) -> Iterator[Finding]:
    saves, backward = function.saves, function.backward
    yield from _inputs_unpacked(function)
    for unpack in function.unpacks:
        yield from _tuple_as_tensor(function, unpack)
    if backward is not None and not saves and not function.ctx_escapes:
        yield from _nothing_saved(function, backward)
    if backward is None or not saves or function.ctx_escapes or any(s.starred for s in saves):
        return
    counts = {len(s.exprs) for s in saves}
    saved = " or ".join(str(c) for c in sorted(counts))
    for unpack in function.unpacks:
        if unpack.exact and unpack.targets is not None and len(unpack.targets) not in counts:
            yield function.at(
                unpack.node,
                f"{function.name}.{backward.name} unpacks {plural(len(unpack.targets), 'saved tensor')}, but "
                f"{saves[0].method.name} saves {saved}.",
                advice=f"Unpack what line {saves[0].node.lineno} saves, in the same order.",
            )
        elif unpack.position is not None and all(not -c <= unpack.position < c for c in counts):
            yield function.at(
                unpack.node,
                f"{function.name}.{backward.name} reads saved tensor {unpack.position}, but {saves[0].method.name} "
                f"saves {saved}.",
                advice=f"Indices start at 0; line {saves[0].node.lineno} says what is saved.",
            )


def _inputs_unpacked(function: FunctionModel) -> Iterator[Finding]:
    """`(x,) = inputs` in setup_context, where forward has two inputs: it raises on every call that needs a gradient."""
    setup, forward = function.setup_context, function.forward
    if setup is None or forward is None or setup.inherited or forward.inherited or forward.vararg is not None:
        return
    given = next((p for p in setup.params if p.role == "inputs"), None)
    inputs = forward.positional
    # Function.apply passes on what the caller wrote; an operator's defaults are filled in.
    fewest = sum(p.default is None for p in inputs) if function.kind != "custom_op" else len(inputs)
    for node in setup.of(ast.Assign):
        if not (given is not None and setup.param_of(node.value) is given):
            continue
        for target in node.targets:
            if not isinstance(target, (ast.Tuple, ast.List)) or any(isinstance(t, ast.Starred) for t in target.elts):
                continue
            if not fewest <= len(target.elts) <= len(inputs):
                yield function.at(
                    node,
                    f"{function.name}.{setup.name} unpacks {plural(len(target.elts), 'input')}, but forward has "
                    f"{len(inputs)} ({', '.join(p.name for p in inputs)}).",
                    advice="Unpack all inputs of forward, in its order; `x, *_ = inputs` leaves the rest.",
                )


def _nothing_saved(function: FunctionModel, backward: Method) -> Iterator[Finding]:
    """A saved tensor is read, and no way through forward saves one."""
    methods = (function.forward, backward, *([function.setup_context] if function.setup_context else []))
    if any(m is None or m.inherited for m in methods) or "save_for_backward" in function.file.source_of(function.node):
        return
    for unpack in function.unpacks:
        if unpack.position is not None or (unpack.exact and unpack.targets):
            yield function.at(
                unpack.node,
                f"{function.name}.{backward.name} reads a saved tensor, but forward saves none.",
                advice="Call ctx.save_for_backward(...) in forward with what backward needs.",
            )
            return


_OF_TUPLES = frozenset(("count", "index"))


def _tuple_as_tensor(function: FunctionModel, unpack: Unpack) -> Iterator[Finding]:
    """`x = ctx.saved_tensors`, and then `x * 2` or `x.shape`: x is a tuple, which has neither."""
    method = unpack.method
    if unpack.targets is not None or unpack.position is not None:
        return
    for name in (n for n in method.of(ast.Name) if isinstance(n.ctx, ast.Load)):
        found = method.definitions(name)
        if not found or any(binding.value is not unpack.node or binding.how != "assign" for binding in found):
            continue
        above = method.file.parents.get(name)
        attribute = (
            isinstance(above, ast.Attribute) and above.attr not in _OF_TUPLES and not above.attr.startswith("__")
        )
        if attribute or (isinstance(above, ast.BinOp) and _fails(method, above, name)):
            yield function.at(
                unpack.node,
                f"'{name.id}' in {function.name}.{method.name} is the tuple of saved tensors, but line {name.lineno} uses it "
                "as a tensor.",
                advice=f"Unpack it, also if it holds one tensor only: `{name.id}, = ctx.saved_tensors`.",
            )
            return


def _fails(method: Method, operation: ast.BinOp, name: ast.Name) -> bool:
    """A tuple may be repeated, and joined to another; nothing else is defined for it."""
    other = operation.left if operation.right is name else operation.right
    return not isinstance(operation.op, (ast.Mult, ast.Add)) or method.value(other).is_tensor
