"""backward writes into the gradient it was given

What it finds
-------------
An in-place operation on a grad_output of `backward`, or on a view of it: `g.mul_(2)`, `g *= c`, `g[mask] = 0`,
`torch.mul(g, c, out=g)`, `g.numpy()[mask] = 0`, `all_reduce(g)`; also inside a function of the same file that g is
passed to. A value that was cloned or computed anew before the write is left alone.

Why it matters
--------------
Autograd does not copy: the tensor it passes to backward may be the one another branch of the graph is about to
read, or the one the caller passed to `y.backward(g)`. Writing into it changes gradients that have nothing to do with
this Function. Measured on torch 2.13: the tensor passed to `y.backward(g)` comes back doubled, and a sibling branch
can receive 2 instead of 1; eager raises for expanded gradients (`.sum()`), the compiled program does not, and returns
4 instead of 2.

Known problems
--------------
`contiguous()`, `to()` and `float()` return the very same tensor when there is nothing to do, so a write after them is
reported too. Writes of kernels (Triton, CUDA) cannot be seen in the source. Where a Triton kernel did it and the gradient is
right, the finding is a warning, and the subject is not verified before you accept "nothing else reads grad_output" with a comment.

References
----------
https://github.com/linkedin/Liger-Kernel/issues/272
https://github.com/pytorch/pytorch/issues/81417
https://docs.pytorch.org/docs/stable/notes/extending.html
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradsmith.findings import Edit, Finding
from gradsmith.rules.transforms import MISMATCHES
from gradsmith.source.walk import nodes_under

if TYPE_CHECKING:
    from gradsmith.lab import Lab
    from gradsmith.source import FunctionModel, Method, Source, Write

CODE = "GS202"
SEVERITY = "error"
WRITES_IN = "backward"
DEMONSTRATION = "grad_output"
EXPLAINS = (
    "backward-raised",
    "not-repeatable",
    "frozen-input",
    "layout-dependent",
    "nonlinear-backward",
    "wrong-second-order",
    *MISMATCHES,
)
FIXABLE = True
BAD = """
import torch


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad_output):
        grad_output.mul_(2)
        return grad_output


gradsmith_inputs = {"Double": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
"""
GOOD = """
import torch


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad_output):
        grad_input = grad_output.clone()
        grad_input.mul_(2)
        return grad_input


gradsmith_inputs = {"Double": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
"""


def lint(function: FunctionModel) -> Iterator[Finding]:
    from gradsmith.source.called import writes_by_calls
    from gradsmith.source.memory import not_in_place

    backward = function.backward
    if backward is None:
        return
    for write in (*backward.writes, *writes_by_calls(backward, ("grad_output",))):
        owned = [s for s in backward.sources_at(write.target, write.node) if s.owner == "grad_output"]
        if not owned or backward.in_nested_function(write.node):
            continue
        source = min(owned, key=lambda s: s.name)
        through = "" if source.same_object and source.certain else _through(write, source)
        yield function.at(
            write.node,
            f"{function.name}.{backward.name} writes into '{source.name}'{through} ({_shown(write)}): other branches "
            "of the graph read the same tensor, so their gradients change too.",
            advice=f"Work on a copy: write `{source.name} = {source.name}.clone()` first{not_in_place(write.how)}.",
            argument=source.name,
            edits=[_clone_first(backward, write, source)],
        )


def _shown(write: Write) -> str:
    named = write.how.endswith("_") and "(" not in write.how
    return f"`.{write.how}`" if named else f"`{write.how}`"


def _through(write: Write, source: Source) -> str:
    target = write.target.id if isinstance(write.target, ast.Name) else ast.unparse(write.target)
    if target == source.name:
        return ", which may still be the caller's tensor"
    return f" through '{target}', which {'shares' if source.certain else 'may share'} its memory"


def _clone_first(method: Method, write: Write, source: Source) -> Edit | None:
    """`g = g.clone()` before the first statement that uses g, so that views taken of it are views of the copy."""
    from gradsmith.source.edits import insert_before

    param = method.param(source.name)
    if param is None or param.kind != "positional":
        return None
    for statement in method.node.body:
        names = (n for n in nodes_under(statement) if isinstance(n, ast.Name) and n.id == source.name)
        if any(names):
            return insert_before(method.file, statement, f"{source.name} = {source.name}.clone()")
    return None


def probe(lab: Lab) -> Iterator[Finding]:
    """Hand backward a grad_output and look at it again afterwards: also sees kernels and `.data`."""
    from gradsmith.checking.assuming import if_nobody_reads, storing_kernel
    from gradsmith.lab.measure.memory import whole
    from gradsmith.lab.measure.values import unchanged
    from gradsmith.lab.triton.events import kernels_logged

    run = lab.precise_run()
    given = {o: v.clone() for o, v in run.normal(lab.generator(4)).items()}
    kept = {o: v.clone() for o, v in given.items()}
    with kernels_logged() as seen:
        run.gradients(given, as_is=True)
    for o, before in kept.items():
        freed = not whole(given[o])
        if freed or not unchanged(before, given[o]):
            name = run.output_names[o] if len(kept) > 1 else "grad_output"
            found = lab.finding(
                f"{lab.target.name}.backward {'freed the memory of' if freed else 'changed'} the grad_output it was given"
                f"{f' for {name}' if len(kept) > 1 else ''}: other branches of the graph read the same tensor.",
                advice="Work on a copy: write `grad_output = grad_output.clone()` first.",
            )
            store = storing_kernel(seen, given[o]) if not freed else None
            if store is not None:
                found = if_nobody_reads(lab, found, store, "nothing else reads grad_output", proves_nothing=True)
            yield found
