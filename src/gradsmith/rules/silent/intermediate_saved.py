"""a saved intermediate makes the gradient of the gradient wrong

What it finds
-------------
`ctx.save_for_backward(t)` where `t` is a tensor computed in forward that is neither an input nor an output, and a
gradient that backward returns is computed from it by operations that autograd records. Functions of the same file are
followed. Silent: a backward under `@once_differentiable`; masks, indices, noise and other values whose derivative is
zero, and what only sounds like one (`chunk_indices`); what comes from inputs that get no gradient. Where a tensor is
handed to a kernel in a helper, or to code outside the file, it is a remark. One report per Function.

Why it matters
--------------
Forward runs without a graph, so to backward such a tensor is a constant. The first gradient is right; differentiating
it again (gradient penalties, Hessian-vector products, MAML) silently misses every term that goes through the
intermediate. Measured on torch 2.13 at x = 2: for x**4 with x and x**2 saved the second derivative is 16 instead of
48; for x**3 with only x**2 saved, a penalty on the squared gradient adds 0 instead of 288. No error, no warning.

Known problems
--------------
Functions that are never differentiated twice are not harmed; say so with `@once_differentiable`. It raises for most
such uses, though not when grad_output itself needs no gradient. A kernel's backward gives a gradient without a graph,
which raises when it is differentiated alone and counts as zero in a sum; opaque-backward reports that.

References
----------
https://docs.pytorch.org/tutorials/intermediate/custom_function_double_backward_tutorial.html
https://github.com/pytorch/pytorch/issues/58509
https://github.com/pytorch/pytorch/pull/81340
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradsmith.findings import Finding
from gradsmith.source import knowledge as know
from gradsmith.source import recorded
from gradsmith.source.indices import is_index
from gradsmith.source.lexicon import is_a

if TYPE_CHECKING:
    from gradsmith.lab import Lab
    from gradsmith.source import FunctionModel, Method, Save
    from gradsmith.source.recorded import Origin, RecordedOrigins

_WRAPS = know.FROM_ARRAYS | {"scalar_tensor"}
CODE = "GS211"
SEVERITY = "warning"
DEMONSTRATION = "second"
EXPLAINS = ("wrong-second-order",)
FIXABLE = False
BAD = """
import torch


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        square = x * x
        ctx.save_for_backward(square)
        return square * x

    @staticmethod
    def backward(ctx, grad_output):
        (square,) = ctx.saved_tensors
        return grad_output * 3 * square


gradsmith_inputs = {"Cube": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
"""
GOOD = """
import torch


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * 3 * x * x


gradsmith_inputs = {"Cube": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
"""


def lint(function: FunctionModel) -> Iterator[Finding]:
    if function.once_differentiable or function.declaration is not None or not function.has_gradient:
        return
    found = [(save, e) for save in function.saves for e in save.exprs if _is_intermediate(function, save, e)]
    if not found:
        return
    traces = recorded.gradients(function)
    graphs = [t for t in traces if _has_graph(t, found)]
    harmful = [(save, e) for save, e in found if any(_is(o, save, e) and o.computed for t in graphs for o in t.origins)]
    if not harmful and (_says_opaque(function) or not any(t.unseen for t in traces)):
        return
    save, first = (harmful or found)[0]
    names = list(dict.fromkeys(ast.unparse(e) for _, e in harmful or found))
    shown = ", ".join(repr(n) for n in names)
    plural = len(names) > 1
    what = f"{function.name}.{save.method.name} saves {shown}, {'which are' if plural else 'which is'} neither input nor output"
    if harmful:
        yield function.at(
            first,
            f"{what}: second derivatives (create_graph=True) are silently wrong, because autograd treats {shown} as "
            f"{'constants' if plural else 'a constant'}.",
            advice=f"Save the inputs and recompute {shown} in backward. If you never need second derivatives, decorate backward with "
            "`@torch.autograd.function.once_differentiable`: then PyTorch raises an error instead of computing a wrong second derivative.",
        )
    else:
        yield function.at(
            first,
            f"{what}, and backward hands {'them' if plural else 'it'} to code outside this file or to a kernel: if autograd does "
            f"not record that, {function.name} has no second derivative, and nothing says so.",
            advice="Decorate backward with `@torch.autograd.function.once_differentiable` if you need only first "
            "derivatives.",
            severity="info",
        )


def _has_graph(gradient: RecordedOrigins, found: list[tuple[Save, ast.expr]]) -> bool:
    """Autograd can differentiate this gradient: grad_output, or a saved input or output, is on its record.

    A gradient made of intermediates and of what a kernel wrote is a constant as a whole. Differentiating it raises.
    """
    return any(o.kind == "param" or not any(_is(o, save, e) for save, e in found) for o in gradient.origins)


def _is(origin: Origin, save: Save, expression: ast.expr) -> bool:
    """Is this, in backward, the tensor that forward saved there?"""
    given = save.node.args
    place = given.index(expression)
    position = None if any(isinstance(a, ast.Starred) for a in given[:place]) else place
    # Branches may save different tensors: only an unpacking of as many can mean this one.
    fits = origin.of is None or save.starred or origin.of == len(given)
    return origin.kind == "saved" and fits and (None in (origin.position, position) or origin.position == position)


def _says_opaque(function: FunctionModel) -> bool:
    """opaque-backward remarks upon a kernel that backward calls itself; once is enough."""
    return function.backward is not None and any(c.is_kernel or c.is_extension for c in function.backward.calls)


def _is_intermediate(function: FunctionModel, save: Save, expression: ast.expr) -> bool:
    value = save.method.value(expression)
    if value.constant or value.never_tensor or value.elements in ("integer", "bool"):
        return False
    if is_a(ast.unparse(expression), "integer") or is_index(save.method, expression):
        return False
    if function.role_of_saved(save, expression) not in ("intermediate", "view"):
        return False
    return not _stands_for_constant(function, save, expression)


LEVEL = "standard"


def probe(lab: Lab) -> Iterator[Finding]:
    """Saved tensors that are neither input nor output, where the second derivative is measured to be wrong."""
    from gradsmith.lab.measure.second_order import second_order
    from gradsmith.lab.subject.target import short_name

    if lab.gradient.wrong or lab.approximate:
        return
    for call in lab.observed.trace.forwards:
        known = [*call.args, *call.outputs]
        strange = [
            i
            for i, tensor in enumerate(call.saved)
            if tensor is not None and tensor.is_floating_point() and not any(tensor is k for k in known)
        ]
        if strange and second_order(lab).wrong:
            name = short_name(call.cls)
            where = ", ".join(f"number {i + 1}" for i in strange)
            yield lab.finding(
                f"{name}.forward saves tensors that are neither input nor output ({where} of {len(call.saved)}), and the "
                "second derivative is wrong.",
                function=name,
                severity="error" if lab.demands_second_order else None,
                advice="Save the inputs and recompute the rest in backward. If you never need second derivatives, decorate backward "
                "with `@torch.autograd.function.once_differentiable`: they then raise.",
                at="save",
            )
            return


def _stands_for_constant(function: FunctionModel, save: Save, expression: ast.expr) -> bool:
    """`cos.reshape(...)` of an input `cos` whose gradient is always None, or a helper's copy of it: nothing is lost."""
    named = save.method.param(ast.unparse(expression))
    trace = recorded.value(function, save.method, expression)
    names = {origin.name for origin in trace.origins} or _wrapped(save.method, expression)
    if trace.discrete and not names and not trace.unseen:
        return True  # a count of what passed a comparison has no derivative
    if named is not None and (trace.unseen or not names):
        names = {named.name}
    elif trace.unseen:
        return False
    params = [save.method.param(name) for name in names]
    return bool(params) and all(
        p is not None and p.role == "input" and p.kind == "positional" and function.gets_no_gradient(p.index)
        for p in params
    )


def _wrapped(method: Method, expression: ast.expr) -> set[str]:
    """`scale` of `torch.tensor(scale)` and `torch.tensor([scale])`: records nothing, and is the argument all the same."""
    made = method.resolve(expression)
    if not isinstance(made, ast.Call) or method.op(made) not in _WRAPS or not made.args:
        return set()
    held = made.args[0].elts if isinstance(made.args[0], (ast.List, ast.Tuple)) else made.args[:1]
    params = [method.param_of(each) for each in held]
    return {p.name for p in params if p is not None} if None not in params else set()
