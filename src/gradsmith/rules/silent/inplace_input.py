"""forward writes into an input without mark_dirty.

What it finds
-------------
An input of forward is changed in place, and `ctx.mark_dirty` does not name it. At run time the values of every input are
compared before and after forward. An input whose memory forward freed is named, too.

Why it matters
--------------
Autograd does not know that the tensor changed. What was computed from the old values upstream gets a wrong gradient, and
the version check that would have raised does not see it.

Known problems
--------------
A buffer passed in to be written (an `out` argument that needs no gradient) is reported as a warning only, and as a remark
where backward returns None for it.
Kernels store into their inputs to save memory. Where a Triton kernel did it and the gradient is right, the finding is a warning,
and the subject is not verified before you accept "nothing reads x after forward" with a comment.

References
----------
https://github.com/pytorch/pytorch/issues/5871, https://github.com/unslothai/unsloth/issues/5002
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

from gradsmith.findings import Finding
from gradsmith.rules.transforms import MISMATCHES
from gradsmith.source import knowledge as know

if TYPE_CHECKING:
    from gradsmith.lab import Lab
    from gradsmith.source import FunctionModel, Method, Param

CODE = "GS204"
SEVERITY = "error"
WRITES_IN = "forward"
NEEDS_TENSOR = True
DEMONSTRATION = "input"
EXPLAINS = ("wrong-gradient", "class-state", "wrong-second-order", *MISMATCHES)
BAD = """
import torch


class ClampedSquare(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        x.clamp_(min=0)
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * 2 * x


gradsmith_inputs = {"ClampedSquare": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
"""
GOOD = """
import torch


class ClampedSquare(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        positive = x.clamp(min=0)
        return positive * positive

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * 2 * x.clamp(min=0)


gradsmith_inputs = {"ClampedSquare": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
"""


def lint(function: FunctionModel) -> Iterator[Finding]:
    forward = function.forward
    if forward is None or function.kind != "function" or not function.has_gradient:
        return
    marks = [m for m in function.marks if m.name == "mark_dirty"]
    if any(m.starred or m.method is not forward for m in marks):
        return
    dirty = {s.name for m in marks for e in m.exprs for s in forward.sources(e)}
    for write in forward.writes:
        owned = [s for s in forward.sources_at(write.target, write.node) if s.owner == "input"]
        if not owned or forward.in_nested_function(write.node) or any(s.name in dirty for s in owned):
            continue
        source = min(owned, key=lambda s: s.name)
        param = forward.param(source.name)
        shown = ast.unparse(write.node)
        if param is None or ".data" in shown or shown == f"{source.name}.copy_({source.name})":
            continue  # a write past the version counter is data-attr's
        yield function.at(
            write.node,
            f"{function.name}.forward changes its input '{source.name}' in place (`{write.how}`) without "
            f"ctx.mark_dirty({source.name}): autograd does not know that the caller's tensor has changed.",
            advice=_advice(source.name, _out_of_place(write.node, source.name)),
            argument=source.name,
            severity=_severity(function, param, source.certain, _on_some_paths(forward, write.target)),
        )


def _advice(name: str, instead: str = "") -> str:
    new = instead or "Compute a new tensor, with an operation whose name does not end in `_`."
    return f"{new} To change '{name}' on purpose, call ctx.mark_dirty({name}), and return {name} as one of the outputs."


def _out_of_place(node: ast.AST, name: str) -> str:
    """`x.clamp_(min=0)` -> `x = x.clamp(min=0)`; nothing where it is written otherwise."""
    func = node.func if isinstance(node, ast.Call) else None
    if not (isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name) and func.value.id == name):
        return ""
    operation = func.attr.rstrip("_")
    if operation not in know.TENSOR_OPS:
        return ""
    assert isinstance(node, ast.Call)
    given = ", ".join((*map(ast.unparse, node.args), *map(ast.unparse, node.keywords)))
    return f"Write `{name} = {name}.{operation}({given})`, which makes a new tensor."


def _on_some_paths(method: Method, target: ast.expr) -> bool:
    """`buffer = x if overwrite else torch.empty_like(x)`: the caller chose."""
    bindings = method.definitions(target) if isinstance(target, ast.Name) else ()
    return len(bindings) > 1 or any(isinstance(b.value, ast.IfExp) for b in bindings)


def _severity(
    function: FunctionModel, param: Param, certain: bool, on_some_paths: bool
) -> Literal["warning", "info"] | None:
    """Buffers that are handed in to be written get no gradient; where the source does not say, warn."""
    gradients = function.gradients_of(param.index)
    if (
        (on_some_paths and not certain)
        or function.gets_no_gradient(param.index)
        or param.declared.elements in ("integer", "bool")
    ):
        return "info"
    return None if certain and gradients is not None else "warning"


def probe(lab: Lab) -> Iterator[Finding]:
    from gradsmith.checking.assuming import if_nobody_reads, storing_kernel
    from gradsmith.lab.measure.memory import whole
    from gradsmith.lab.measure.values import unchanged
    from gradsmith.lab.triton.events import kernels_logged

    with kernels_logged() as seen:
        run = lab.run()
    dirty = [tensor for call in run.trace.forwards for tensor in call.dirty]
    for leaf in lab.arguments.leaves:
        passed = run.passed[leaf.position]
        if any(passed is tensor for tensor in dirty):
            continue
        if not whole(passed):
            yield lab.finding(
                f"{lab.target.name}.forward frees the memory of its input '{leaf.name}': code that reads that tensor "
                "afterwards reads memory that is not there, which can end the process.",
                argument=leaf.name,
                severity="error" if leaf.differentiable else "warning",
                advice=f"Leave the memory of '{leaf.name}' to its owner.",
            )
            continue
        if unchanged(leaf.tensor, passed):
            continue
        found = lab.finding(
            f"{lab.target.name}.forward changes its input '{leaf.name}' in place without ctx.mark_dirty({leaf.name}): autograd does "
            "not know that the caller's tensor has changed.",
            argument=leaf.name,
            severity="error" if leaf.differentiable else "warning",
            advice=_advice(leaf.name),
        )
        if leaf.differentiable and (store := storing_kernel(seen, passed)) is not None:
            found = if_nobody_reads(
                lab, found, store, f"nothing reads '{leaf.name}' after forward", proves_nothing=True
            )
        yield found
