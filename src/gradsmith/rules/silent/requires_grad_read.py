"""forward asks a tensor whether it needs a gradient

What it finds
-------------
`x.requires_grad` in forward where `x` is a copy or something computed, for which it is always False;
`torch.is_grad_enabled()` in forward, which is always False too; and in backward `t.requires_grad` of a saved tensor that was
such a copy. Asking the input itself is only remarked upon.

Why it matters
--------------
forward runs with gradients off, so nothing that is computed in it requires grad. Code that decides by it what to save or what
backward returns takes the same branch always: the gradient stays away, or for `x = x.contiguous()` depends on the layout of
the input.

Known problems
--------------
For the input itself the answer is right in eager mode; ctx.needs_input_grad is right everywhere.

References
----------
https://github.com/verl-project/verl/pull/7235 (every layer below the last one trained with a zero gradient)
Measured on torch 2.13: in forward, `x.requires_grad` is True for the input and for a view of it, False for `x * 1`, and
`torch.is_grad_enabled()` is False.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradsmith.findings import Edit, Finding
from gradsmith.source.edits import replace

if TYPE_CHECKING:
    from gradsmith.source import FunctionModel, Method, Source

CODE = "GS225"
SEVERITY = "warning"
EXPLAINS = ("frozen-input", "none-for-tensor", "layout-dependent")
FIXABLE = True
BAD = """
import torch


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        x = x.contiguous()
        ctx.trained = x.requires_grad
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * 2 * x if ctx.trained else None


gradsmith_inputs = {"Square": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
"""
GOOD = BAD.replace("x.requires_grad\n", "ctx.needs_input_grad[0]\n").replace("        x = x.contiguous()\n", "")


def lint(function: FunctionModel) -> Iterator[Finding]:
    yield from _asked_in_backward(function)
    forward = function.forward
    if function.kind != "function" or forward is None or forward.inherited:
        return
    turns_on = any(n.attr in _TURN_ON for n in forward.of(ast.Attribute))
    for node in forward.nodes:
        if turns_on or forward.in_nested_function(node):
            continue
        if isinstance(node, ast.Call) and forward.dotted(node.func) == "torch.is_grad_enabled":
            yield function.at(
                node,
                f"{function.name}.forward asks torch.is_grad_enabled(), which is always False in forward.",
                advice="Ask `any(ctx.needs_input_grad)`.",
            )
        elif isinstance(node, ast.Attribute) and node.attr == "requires_grad" and isinstance(node.ctx, ast.Load):
            parent = forward.file.parents.get(node)
            if not (
                isinstance(parent, ast.keyword) and parent.arg == "requires_grad"
            ):  # PyTorch sets it anew afterwards
                yield from _read(function, forward, node)


def _asked_in_backward(function: FunctionModel) -> Iterator[Finding]:
    backward, saves = function.backward, function.saves
    if backward is None or function.kind != "function" or len(saves) != 1 or saves[0].starred or function.ctx_escapes:
        return
    save = saves[0]
    for node in backward.of(ast.Attribute):
        if not (node.attr == "requires_grad" and isinstance(node.ctx, ast.Load)):
            continue
        found = [s for s in backward.sources(node.value) if s.owner == "saved" and s.same_object and s.certain]
        index = found[0].position if len(found) == 1 else None
        if index is None or not 0 <= index < len(save.exprs):
            continue
        saved = save.exprs[index]
        sources = save.method.sources(saved)
        if sources and (all(s.certain for s in sources) or not _may_be_copy(save.method, saved)):
            continue
        if sources or (_is_computed(save.method, saved) and function.role_of_saved(save, saved) == "intermediate"):
            yield function.at(
                node,
                f"{function.name}.{backward.name} asks '{ast.unparse(node)}', but what {save.method.name} saved there "
                f"({ast.unparse(saved)}) {'may be' if sources else 'is'} a copy, and copies made in forward never require grad.",
                advice="Ask ctx.needs_input_grad.",
            )


_TURN_ON = ("enable_grad", "set_grad_enabled", "requires_grad_")


def _read(function: FunctionModel, forward: Method, node: ast.Attribute) -> Iterator[Finding]:
    found = [s for s in forward.sources(node.value) if s.owner == "input"]
    shown = ast.unparse(node.value)
    if len(found) == 1 and (found[0].certain or not _may_be_copy(forward, node.value)):
        yield function.at(
            node,
            f"{function.name}.forward asks '{shown}.requires_grad'; ctx.needs_input_grad says it for every mode.",
            advice=_advice(found[0]),
            argument=found[0].name,
            edits=[_asked(forward, node, found[0])],
            severity="info",
        )
    elif len(found) == 1:
        yield function.at(
            node,
            f"{function.name}.forward asks '{shown}.requires_grad', but '{shown}' may be a copy by then, and copies made in "
            "forward never require grad.",
            advice=_advice(found[0]),
            argument=found[0].name,
            edits=[_asked(forward, node, found[0])],
        )
    elif not found and _is_computed(forward, node.value):
        yield function.at(
            node,
            f"{function.name}.forward asks '{shown}.requires_grad', which is always False: '{shown}' was computed in forward.",
            advice="Ask ctx.needs_input_grad about the inputs.",
        )


def _advice(source: Source) -> str:
    return f"Write `ctx.needs_input_grad[{source.position}]`."


def _asked(forward: Method, node: ast.Attribute, source: Source) -> Edit | None:
    if forward.ctx is None or source.position is None or forward.vararg is not None:
        return None
    return replace(forward.file, node, f"{forward.ctx}.needs_input_grad[{source.position}]")


def _may_be_copy(method: Method, node: ast.expr) -> bool:
    """Not merely `if bias is None: bias = torch.zeros(...)`: a stand-in needs no gradient."""
    bindings = method.definitions(node) if isinstance(node, ast.Name) else ()
    made = [b.value for b in bindings if b.how != "param" and b.value is not None]
    # What an unknown function returns, or a list holds, may be the tensor itself.
    values = made if isinstance(node, ast.Name) else [node]
    return any(not method.value(v).constant and _makes_tensor(method, v) for v in values)


def _makes_tensor(method: Method, node: ast.expr) -> bool:
    parts = [node.body, node.orelse] if isinstance(node, ast.IfExp) else [node]
    return any(isinstance(p, ast.BinOp) or (isinstance(p, ast.Call) and method.op(p) is not None) for p in parts)


def _is_computed(forward: Method, node: ast.expr) -> bool:
    """The result of arithmetic or of a torch operation, on every path."""
    value = forward.resolve(node)
    if isinstance(value, ast.Call):
        keywords = {k.arg for k in value.keywords}
        return forward.op(value) is not None and "requires_grad" not in keywords and forward.value(value).is_tensor
    return isinstance(value, ast.BinOp)
