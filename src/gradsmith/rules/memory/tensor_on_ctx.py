"""a tensor is kept as an attribute of ctx instead of through save_for_backward

What it finds
-------------
`ctx.x = x` in forward or setup_context, where `x` is certainly a tensor: annotated as one, the result of a torch
operation, also passed to save_for_backward, or used as only tensors can be. Numbers, shapes, flags and arguments of
unknown type are left alone, and so are attributes that backward deletes.

Why it matters
--------------
`save_for_backward` counts versions, breaks the cycle output -> grad_fn -> output, frees the tensor after backward and
calls `saved_tensors_hooks` (checkpointing, offloading). An attribute does none of that. Measured on torch 2.13: an
output on ctx is a reference cycle, 50 of 50 were alive until the garbage collector ran; an input on ctx that is
changed in place before backward gives a wrong gradient without an error; offloading hooks fire 0 times.

Known problems
--------------
A tensor that is neither input nor output, and an output that is marked non-differentiable, make no cycle, and masks, indices and inputs that get no gradient are hardly
ever changed: these are reported as information only.

References
----------
https://github.com/pytorch/pytorch/issues/25340
https://github.com/pytorch/pytorch/issues/94990
https://docs.pytorch.org/docs/stable/autograd.html#torch.autograd.function.FunctionCtx.save_for_backward
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradsmith.findings import Edit, Finding
from gradsmith.source import knowledge as know
from gradsmith.source.guards import is_none_test, no_tensor
from gradsmith.source.indices import is_index
from gradsmith.source.lexicon import is_a

if TYPE_CHECKING:
    from gradsmith.lab import Lab
    from gradsmith.source import AttributeWrite, FunctionModel, Method

CODE = "GS401"
SEVERITY = "warning"
NEEDS_TENSOR = True
DEMONSTRATION = "cycle"
EXPLAINS = ("reference-cycle",)
FIXABLE = True
BAD = """
import torch


class Exp(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = torch.exp(x)
        ctx.y = y
        return y

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * ctx.y


gradsmith_inputs = {"Exp": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
"""
GOOD = """
import torch


class Exp(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = torch.exp(x)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad_output):
        (y,) = ctx.saved_tensors
        return grad_output * y


gradsmith_inputs = {"Exp": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
"""
_HARM = {
    "output": "the output refers to ctx and ctx to the output, so their memory stays until Python's garbage collector runs",
    "input": "changing it in place before backward gives a wrong gradient without an error",
}
_ELSE = "it is invisible to saved-tensor hooks and stays in memory after backward"


def lint(function: FunctionModel) -> Iterator[Finding]:
    backward = function.backward
    if backward is None:
        return  # for inference: nothing is differentiated, and no output refers to ctx
    dropped = {w.attr for w in backward.context.writes}
    kept = [w for w in function.ctx_writes if w.attr not in dropped and _is_tensor(function, w)]
    for write in kept:
        value = write.value
        if value is None:
            continue
        role: str = function.role_of_value(write.method, value)
        reads = [r for r in function.ctx_reads if r.attr == write.attr]
        if role == "input" and not function.ctx_escapes and all(_is_measured(r.method, r.node) for r in reads):
            role = "unread"
        if role == "output" and _is_marked(write):
            role = "marked"  # has no grad_fn, so it refers to nothing
        if role == "input" and function.unpacks and _is_saved(write):
            role = "saved"  # unpacking asks for the version of all that was saved
        harm = _HARM.get(role, _ELSE)
        name = ast.unparse(value)
        yield function.at(
            write.node,
            f"{function.name}.{write.method.name} keeps the tensor {name!r} as ctx.{write.attr}: {harm}.",
            advice=f"Write `ctx.save_for_backward({name})` and unpack `ctx.saved_tensors` in backward.",
            argument=name if role in ("input", "unread", "saved") else None,
            edits=_save_instead(function, write, kept),
            unsafe=f"other code that reads ctx.{write.attr} does not find it any more",
            severity=None if role in _HARM and not _has_no_gradient(function, write) else "info",
        )


def _is_tensor(function: FunctionModel, write: AttributeWrite) -> bool:
    if write.value is None or no_tensor(write.method, write.node, ast.unparse(write.value)):
        return False
    saved = {ast.unparse(e) for s in write.method.context.saves for e in s.exprs}
    if isinstance(write.value, ast.Name) and write.value.id in saved:
        return True
    return write.method.value(write.value).is_tensor or _gets_a_gradient(function, write)


def _is_measured(method: Method, node: ast.expr) -> bool:
    """Only its shape, dtype or device is asked for, or whether there is one: its numbers do not matter."""
    parent = method.file.parents.get(node)
    if isinstance(parent, ast.Attribute):
        return parent.attr in know.MEASURED | know.TO_SHAPE | know.TO_INT | know.TO_FLAG
    if isinstance(parent, ast.Call):
        return node in parent.args and method.op(parent) in know.FILLED_NOT_COMPUTED | {"empty_like"}
    if isinstance(parent, ast.Compare):
        return is_none_test(parent) is not None
    if isinstance(parent, ast.Assign) and parent.value is node and isinstance(parent.targets[0], ast.Name):
        uses = [n for n in method.of(ast.Name) if _holds(method, n, node)]
        return all(_is_measured(method, use) for use in uses)
    return False


def _holds(method: Method, name: ast.Name, value: ast.expr) -> bool:
    return any(binding.value is value for binding in method.definitions(name))


def _is_saved(write: AttributeWrite) -> bool:
    """Whether the same value is saved for backward, too."""
    value, method = write.value, write.method
    if not isinstance(value, ast.Name):
        return False
    same = [e for s in method.context.saves for e in s.exprs if isinstance(e, ast.Name) and e.id == value.id]
    return any(set(method.definitions(e)) == set(method.definitions(value)) for e in same)


def _is_marked(write: AttributeWrite) -> bool:
    """Whether it is an output that autograd is told to leave alone."""
    marks = (m for m in write.method.context.marks if m.name == "mark_non_differentiable")
    return write.value is not None and ast.unparse(write.value) in {ast.unparse(e) for m in marks for e in m.exprs}


def _gets_a_gradient(function: FunctionModel, write: AttributeWrite) -> bool:
    """An input for which backward returns something else than None is a tensor, and so are all of `*inputs`."""
    param = write.method.param_of(write.value) if write.value is not None else None
    if param is None or param.role != "input" or param.declared.kind not in ("unknown", "tensor"):
        return False
    if param.kind == "vararg":
        return function.backward is not None and not function.backward.raises_only
    gradients = function.gradients_of(param.index) if param.kind == "positional" else None
    return bool(gradients) and not any(isinstance(g, ast.Constant) for g in gradients or [])


def _has_no_gradient(function: FunctionModel, write: AttributeWrite) -> bool:
    """Indices, masks and counts, and what gets None in every call: nobody changes them between forward and backward."""
    if write.value is None:
        return True
    param = write.method.param_of(write.value)
    if param is not None and param.kind == "positional" and function.gets_no_gradient(param.index):
        return True
    value = write.method.value(write.value)
    if value.elements in ("integer", "bool") or is_a(ast.unparse(write.value), "integer"):
        return True
    return is_index(write.method, write.value)


def _save_instead(function: FunctionModel, write: AttributeWrite, kept: list[AttributeWrite]) -> list[Edit | None]:
    """Only the plainest case: one tensor on ctx, nothing saved yet, read once."""
    from gradsmith.source.edits import replace

    reads = [r for r in function.ctx_reads if r.attr == write.attr]
    again = [w for w in function.ctx_writes if w.attr == write.attr]
    if len(kept) != 1 or function.saves or len(reads) != 1 or len(again) != 1 or function.ctx_escapes:
        return []
    if not isinstance(write.statement, ast.Assign) or write.statement.targets != [write.node] or write.value is None:
        return []
    if not isinstance(reads[0].node, ast.Attribute) or function.unpacks:
        return []
    ctx, file = write.method.ctx, write.method.file
    text = f"{ctx}.save_for_backward({file.source_of(write.value)})"
    backward = reads[0].method
    return [
        replace(file, write.statement, text),
        replace(backward.file, reads[0].node, f"{backward.ctx}.saved_tensors[0]") if backward.file is file else None,
    ]


def probe(lab: Lab) -> Iterator[Finding]:
    """Read what forward really left on ctx; a proven cycle is an error, not a matter of style."""
    from torch import Tensor

    from gradsmith.lab.measure.leaks import survivors
    from gradsmith.lab.measure.raw import argument_names
    from gradsmith.lab.subject.target import short_name

    for call in lab.observed.trace.forwards:
        names = argument_names(call.cls, len(call.args))
        for attribute, kept in call.attributes().items():
            value = next(
                (t for t in (kept if isinstance(kept, (tuple, list)) else [kept]) if isinstance(t, Tensor)), None
            )
            if value is None:
                continue
            given = next((names[i] for i, arg in enumerate(call.args) if arg is value), None)
            role = "output" if any(out is value for out in call.outputs) else "input" if given else "other"
            if role == "input" and not _reads(call.cls, attribute):
                role = "other"  # nothing depends on it
            cycle = role == "output" and survivors(lab).before_collection > 0
            harmless = role == "other" or not value.is_floating_point()
            yield lab.finding(
                f"{short_name(call.cls)}.forward keeps a tensor as ctx.{attribute}: {_HARM.get(role, _ELSE)}.",
                function=short_name(call.cls),
                line=_line(call.cls, attribute),
                argument=given,
                severity="error" if cycle else "info" if harmless else None,
                advice=f"Use ctx.save_for_backward(...) for ctx.{attribute} and unpack ctx.saved_tensors in backward.",
            )


def _line(cls: type, attribute: str) -> int | None:
    """Where forward, or setup_context, puts it on ctx."""
    from gradsmith.source import model_of

    model = model_of(cls)
    found = [write.node.lineno for write in (model.ctx_writes if model is not None else ()) if write.attr == attribute]
    return found[0] if len(found) == 1 else None


def _reads(cls: type, attribute: str) -> bool:
    """Whether backward speaks of the attribute, or hands ctx to somebody who may."""
    from gradsmith.source import model_of

    model = model_of(cls)
    if model is None or model.backward is None or model.backward.context.escapes:
        return True
    return any(read.attr == attribute for read in model.ctx_reads)
