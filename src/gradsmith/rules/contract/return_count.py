"""backward returns more or fewer gradients than forward has inputs

What it finds
-------------
A `return` of backward whose number of values is spelled out in the source (a tuple, a single tensor, sums of tuples)
and does not match the number of arguments of forward after ctx. Arguments with a default may be left out by callers:
too few for them is an error where the file passes them to apply, nothing where it never does, and a warning where it
calls apply nowhere. Surplus values that are None are the business of `extra-none`.

Why it matters
--------------
PyTorch wants one value per input, None for those without a gradient, and raises at the first backward: "function
LinearBackward returned an incorrect number of gradients (expected 2, got 1)". The error comes after forward, often
minutes into a run, and does not say which return or which input.

Known problems
--------------
Backward that only raises, and Functions whose outputs are all marked non-differentiable, are skipped: it never runs.

References
----------
https://docs.pytorch.org/docs/stable/notes/extending.html
https://github.com/huawei-noah/AdderNet/issues/21
https://github.com/getkeops/keops/issues/327
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradsmith.findings import Finding, plural
from gradsmith.source.walk import nodes_under

if TYPE_CHECKING:
    from gradsmith.lab import Lab
    from gradsmith.source import FunctionModel, Return

CODE = "GS101"
SEVERITY = "error"
OUTCOME = "count"
DEMONSTRATION = "run"
EXPLAINS = ("backward-raised",)
FIXABLE = False
BAD = """
import torch


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.factor = factor
        return x * factor

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * ctx.factor


gradsmith_inputs = {"Scale": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True), 2.0)}
"""
GOOD = """
import torch


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.factor = factor
        return x * factor

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * ctx.factor, None


gradsmith_inputs = {"Scale": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True), 2.0)}
"""


def lint(function: FunctionModel) -> Iterator[Finding]:
    forward, backward = function.forward, function.backward
    if forward is None or backward is None or not function.has_gradient:
        return
    if any(p.kind in ("keyword", "kwarg") for p in function.inputs):
        return
    names = [p.name for p in forward.positional]
    fewest = sum(p.default is None for p in forward.positional)
    for found in backward.returns:
        if found.elements is None or _only_when_unneeded(function, found):
            continue
        count = len(found.elements)
        surplus = [e for e in found.elements[len(names) :] if not _is_none(e) and backward.value(e).kind != "none"]
        if count < fewest:
            wanted = ", ".join(names)
            missing = "" if count >= len(names) else f"; '{names[count]}' is the first without one"
            yield function.at(
                found.node,
                f"{function.name}.{backward.name} returns {plural(count, 'gradient')}, but forward has "
                f"{plural(len(names), 'input')} ({wanted}){missing}.",
                advice=f"Return one value for each of {wanted}, in that order; None for those that need no gradient.",
            )
        elif count < len(names) and ((passed := most_passed(function)) or len(names)) > count:
            if passed is None and (_is_abstract(function) or _tested_before(function, found, names[count])):
                continue
            if _chosen_by_forward(function, found):
                continue
            yield function.at(
                found.node,
                f"{function.name}.{backward.name} returns {plural(count, 'gradient')}: a call that passes "
                f"'{names[count]}' to apply raises in backward.",
                advice=f"Return one value for each of {', '.join(names)}, in that order; None for those that need no "
                "gradient.",
                severity="warning" if passed is None else None,
            )
        elif surplus and forward.vararg is None:
            yield function.at(
                found.node,
                f"{function.name}.{backward.name} returns {count} values, but forward has only "
                f"{plural(len(names), 'input')} ({', '.join(names)}).",
                advice=f"Return one value for each of {', '.join(names)}, in that order.",
            )


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _is_abstract(function: FunctionModel) -> bool:
    """Nobody calls its apply; what derives from it may return more."""
    methods = (n for n in getattr(function.node, "body", ()) if isinstance(n, ast.FunctionDef))
    return any((function.file.dotted(d) or "").endswith("abstractmethod") for m in methods for d in m.decorator_list)


def _tested_before(function: FunctionModel, found: Return, name: str) -> bool:
    """`if bias is not None: return gx, gbias` comes before `return gx`: who passes one gets the longer answer."""
    others = function.backward.returns if function.backward else ()
    tests = [p.test for r in others if r is not found and isinstance(p := function.file.parents.get(r.node), ast.If)]
    return any(isinstance(n, ast.Name) and n.id == name for test in tests for n in ast.walk(test))


def _chosen_by_forward(function: FunctionModel, found: Return) -> bool:
    """`if ctx.count == 7: return ...` before this one: forward noted how many values it was given, or what it was given."""
    backward = function.backward
    if backward is None or len({len(r.elements or ()) for r in backward.returns}) == 1:
        return False
    written = {w.attr for w in function.ctx_writes}
    tested = [n for guard in backward.guards(found.node) for n in nodes_under(guard.test)]
    return any(isinstance(n, ast.Attribute) and backward.context.is_ctx(n.value) and n.attr in written for n in tested)


def most_passed(function: FunctionModel) -> int | None:
    """With how many values the file calls apply, or a name for it, at most; None where it does not, or where a star hides it."""
    applied = f"{function.name}.apply"
    blocks = list(function.file.blocks_with(applied))
    bound = [n for b in blocks for n in nodes_under(b) if isinstance(n, ast.Assign) and ast.unparse(n.value) == applied]
    spellings = {applied, *(ast.unparse(target) for n in bound for target in n.targets)}
    counts: list[int] = []
    for block in function.file.blocks_with(*spellings):
        for call in nodes_under(block):
            if isinstance(call, ast.Call) and ast.unparse(call.func) in spellings:
                if any(isinstance(a, ast.Starred) for a in call.args):
                    return None
                counts.append(len(call.args))
    return max(counts, default=None)


def _only_when_unneeded(function: FunctionModel, found: Return) -> bool:
    """`if not any(ctx.needs_input_grad): return None` is never taken: backward does not run then."""
    backward = function.backward
    if backward is None or found.elements is None or not all(_is_none(e) for e in found.elements):
        return False
    return backward.needs_tested(found.node) != frozenset()


def probe(lab: Lab) -> Iterator[Finding]:
    """Count what backward really returned, before the engine complains about it."""
    from gradsmith.lab.measure.raw import argument_names, forward_of, observed_trace
    from gradsmith.lab.subject.target import short_name

    trace = observed_trace(lab)
    for backward in trace.backwards:
        forward = forward_of(trace, backward)
        if forward is None:
            continue
        names = argument_names(backward.cls, len(forward.args))
        count, wanted = len(backward.returned), len(forward.args)
        surplus = [g for g in backward.returned[wanted:] if g is not None]
        if count < wanted or surplus:
            name = short_name(backward.cls)
            yield lab.finding(
                f"{name}.backward returns {plural(count, 'gradient')}, but forward was given {plural(wanted, 'input')} "
                f"({', '.join(names)}).",
                function=name,
                advice=f"Return one value for each of {', '.join(names)}, in that order; None for those that need no "
                "gradient.",
            )
            return
