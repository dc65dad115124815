"""backward writes into a saved tensor.

What it finds
-------------
A tensor that came out of `ctx.saved_tensors` is changed by backward: `x.add_(1)`, `mask *= g`, `out=x`, `x.numpy()[0] = 1`,
also by a function of the same file that it is passed to, or by a kernel that writes into it. At run time the values of saved tensors are compared before and after backward, which also sees writes
that the version counter misses (NumPy, `.data`, Triton).

Why it matters
--------------
A saved input is the caller's own tensor: the write changes their data. A second backward through the graph reads the
changed values and is wrong without an error.

Known problems
--------------
lint does not see what a kernel launch writes; check does. Kernels that reuse memory are warned of:
one backward through the graph is right, if nothing reads the tensor afterwards.

References
----------
https://github.com/linkedin/Liger-Kernel/issues/272, https://github.com/NVIDIA/apex/issues/1587
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradsmith.findings import Finding
from gradsmith.rules.transforms import MISMATCHES

if TYPE_CHECKING:
    from torch import Tensor

    from gradsmith.lab import Lab
    from gradsmith.source import FunctionModel, Method

CODE = "GS203"
SEVERITY = "error"
WRITES_IN = "backward"
DEMONSTRATION = "saved"
EXPLAINS = (
    "not-repeatable",
    "nonlinear-backward",
    "wrong-gradient",
    "frozen-input",
    "layout-dependent",
    "unused-output",
    "class-state",
    *MISMATCHES,
)
BAD = """
import torch


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        x.mul_(2)
        return grad_output * x


gradsmith_inputs = {"Square": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
"""
GOOD = BAD.replace("x.mul_(2)\n        return grad_output * x", "return grad_output * 2 * x")


def lint(function: FunctionModel) -> Iterator[Finding]:
    from gradsmith.source.called import writes_by_calls
    from gradsmith.source.memory import not_in_place

    backward = function.backward
    if backward is None:
        return
    told: set[tuple[str, bool]] = set()  # one mistake is one finding, however many lines it takes
    writes = [*backward.writes, *writes_by_calls(backward, ("saved",))]
    for write in sorted(writes, key=lambda write: write.statement.lineno):
        owned = [s for s in backward.sources_at(write.target, write.node) if s.owner == "saved"]
        if not owned or backward.in_nested_function(write.node):
            continue
        source = min(owned, key=lambda s: s.name)
        chosen = _is_chosen(backward, write.target)
        if (source.name, source.certain) in told:
            continue
        told.add((source.name, source.certain))
        may = "" if source.certain else " (on some paths)" if chosen else " (it may be a copy by then)"
        yield function.at(
            write.node,
            f"{function.name}.{backward.name} writes into '{source.name}' (`{write.how}`), which it got from "
            f"ctx.saved_tensors{may}: a second backward reads the changed values.",
            advice=f"Work on a new tensor: write `{source.name} = {source.name}.clone()` first{not_in_place(write.how)}.",
            severity=None if source.certain else "info" if chosen else "warning",
        )


def _is_chosen(method: Method, target: ast.expr) -> bool:
    """`grad = x if inplace else torch.empty_like(x)`: the saved tensor on some paths, because somebody asked for it."""
    while isinstance(target, (ast.Subscript, ast.Attribute)):
        target = target.value
    bindings = method.definitions(target) if isinstance(target, ast.Name) else ()
    return isinstance(target, ast.IfExp) or len(bindings) > 1 or any(isinstance(b.value, ast.IfExp) for b in bindings)


def probe(lab: Lab) -> Iterator[Finding]:
    from gradsmith.checking.assuming import if_nobody_reads, storing_kernel
    from gradsmith.lab.measure.memory import whole
    from gradsmith.lab.measure.raw import argument_names
    from gradsmith.lab.measure.values import unchanged
    from gradsmith.lab.subject.foreign import runs_kernels
    from gradsmith.lab.subject.target import short_name
    from gradsmith.lab.triton.events import kernels_logged

    run = lab.run()
    kept = [
        (call, i, tensor, tensor.detach().clone())
        for call in run.trace.forwards
        for i, tensor in enumerate(call.saved)
        if tensor is not None and whole(tensor)
    ]
    with kernels_logged() as seen:
        run.gradients(run.normal(lab.generator(3)))
    for call, i, tensor, before in kept:
        if whole(tensor) and unchanged(before, tensor):
            continue
        names = argument_names(call.cls, len(call.args))
        name = next((names[k] for k, arg in enumerate(call.args) if arg is tensor), f"saved tensor {i}")
        if not whole(tensor):
            if any(value is tensor for value in (*call.args, *call.outputs)):  # its own are a matter of not-repeatable
                yield lab.finding(
                    f"{short_name(call.cls)}.backward frees the memory of '{name}', which it got from "
                    "ctx.saved_tensors: it belongs to the caller, who reads memory that is not there.",
                    function=short_name(call.cls),
                    argument=name,
                    advice="Leave the memory of inputs and outputs to their owner; PyTorch frees saved tensors itself.",
                )
            continue
        owners = [k for k, value in enumerate((*call.args, *call.outputs)) if _shares(value, tensor)]
        private = not owners
        if owners and owners[0] < len(names):
            name = names[owners[0]]
        found = lab.finding(
            f"{short_name(call.cls)}.backward writes into '{name}', which it got from ctx.saved_tensors.",
            function=short_name(call.cls),
            argument=name,
            # Kernels reuse what only backward can reach, to save memory: one backward through the graph is right.
            severity="warning" if private and runs_kernels(lab.target) else None,
            advice=f"Work on a new tensor: `{name} * 2` or `{name}.clone()` instead of an in-place operation.",
        )
        if not private and (store := storing_kernel(seen, tensor)) is not None:
            found = if_nobody_reads(lab, found, store, f"nothing reads '{name}' after backward", proves_nothing=False)
        yield found


def _shares(value: object, tensor: Tensor) -> bool:
    """Whether it is that tensor, or a view of the same memory, whatever part of it."""
    from torch import Tensor

    if not isinstance(value, Tensor) or not tensor.numel():
        return value is tensor
    return value.untyped_storage().data_ptr() == tensor.untyped_storage().data_ptr()
