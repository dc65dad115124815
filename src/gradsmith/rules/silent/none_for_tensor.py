"""backward returns None for an input that has a gradient.

What it finds
-------------
An input requires grad and the output depends on it, but backward returns None (or nothing flows to it). In source: backward
computes `dx` or `grad_x`, reads it nowhere and returns None for `x`; backward is nothing but `pass`; or an input that
sounds like a parameter gets None (a remark).

Why it matters
--------------
PyTorch takes None for zero. The parameter is never trained, and nothing says so.

Known problems
--------------
Inputs that are not meant to be differentiated, such as targets and masks, should not require grad in the example. Of the
surrogates only `stop` is free of this rule; under the others a None beside a gradient for an input that needs none is
reported even where forward is flat.

References
----------
Measured on torch 2.13: `weight.grad` stays None and the optimizer skips the parameter without a word. A mutant of this
kind passes gradgradcheck and opcheck.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradsmith.findings import Finding
from gradsmith.source.lexicon import gradient_names, is_a
from gradsmith.surrogate_kinds import waives

if TYPE_CHECKING:
    from gradsmith.lab import Lab
    from gradsmith.source import FunctionModel, Method, Param

CODE = "GS213"
SEVERITY = "error"
_IN_ORDER = "Return the gradients in the order of forward's inputs."
WAIVED_BY = ("stop",)
OUTCOME = "none"
EXPLAINS = ("undeclared-surrogate",)
BAD = """
import torch


class Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x @ weight

    @staticmethod
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        return grad_output @ weight.t(), None


def example():
    x = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    return x, torch.randn(3, 5, dtype=torch.float64, requires_grad=True)


gradsmith_inputs = {"Product": example}
"""
GOOD = """
import torch


class Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x @ weight

    @staticmethod
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        grad_x = grad_output @ weight.t() if ctx.needs_input_grad[0] else None
        grad_weight = x.t() @ grad_output if ctx.needs_input_grad[1] else None
        return grad_x, grad_weight


def example():
    x = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    return x, torch.randn(3, 5, dtype=torch.float64, requires_grad=True)


gradsmith_inputs = {"Product": example}
"""


def lint(function: FunctionModel) -> Iterator[Finding]:
    forward, backward = function.forward, function.backward
    if forward is None or backward is None or waives(function.declaration, WAIVED_BY):
        return
    if _is_empty(backward) and not forward.is_stub and not forward.raises_only and not _is_template(function):
        many = len(forward.positional) > 1
        harm = "refuses that for several inputs" if many else "takes that for a gradient of zero"
        yield function.at(
            backward.node,
            f"{function.name}.{backward.name} does nothing, and PyTorch {harm}: what comes before {function.name} is not "
            "trained.",
            advice="Write the gradient, or `raise NotImplementedError` where there is none.",
            severity="warning",
        )
        return
    if not function.has_gradient:
        return
    if all(function.gets_no_gradient(p.index) for p in forward.positional):
        return
    for param in forward.positional:
        if not function.gets_no_gradient(param.index):
            continue
        computed = _thrown_away(backward, param.name)
        if computed is not None:
            yield function.at(
                backward.returns[0].node,
                f"{function.name}.{backward.name} computes '{computed}' and returns None for '{param.name}': it never gets a gradient.",
                advice=f"Return '{computed}' as the gradient of '{param.name}'; if it must not be trained, do not compute it.",
                argument=param.name,
                severity="warning",
            )
            continue
        if not _is_trained(function, param):
            continue
        yield function.at(
            backward.returns[0].node if backward.returns else backward.node,
            f"{function.name}.{backward.name} returns None for '{param.name}', so '{param.name}' never gets a gradient. Its name "
            "suggests that it is trained.",
            advice=f"Return the gradient of '{param.name}'. If '{param.name}' is not trained, pass it detached.",
            argument=param.name,
            severity="info",
        )


def _is_empty(backward: Method) -> bool:
    """Nothing but `pass`: `...` stands for code that is elsewhere."""
    said = [s for s in backward.node.body if not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))]
    return bool(said) and all(isinstance(s, ast.Pass) for s in said) and not backward.inherited


def _is_template(function: FunctionModel) -> bool:
    """Others derive from it and write their own backward; it is for export only; nothing it returns has a gradient."""
    project = function.file.project
    derived = project is not None and any(base is function for other in project.functions for base in other.bases)
    exported = any(isinstance(n, ast.FunctionDef) and n.name == "symbolic" for n in function.node.body)
    return derived or exported or any(mark.name == "mark_non_differentiable" for mark in function.marks)


def _thrown_away(backward: Method, name: str) -> str | None:
    """`dx` or `grad_x` that backward computes for the input `x`, and reads nowhere but to compute it further."""
    spellings = {text.lower() for text in gradient_names(name)}
    for binding in backward.flow.bindings:
        if binding.how not in ("assign", "unpack") or binding.name.lower() not in spellings or _is_none(binding.value):
            continue
        own = {id(b.statement) for b in backward.flow.bindings if b.name == binding.name}
        if all(id(backward.statement(n)) in own for n in backward.nodes if _reads(n, binding.name)):
            return binding.name
    return None


def _is_none(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _reads(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load)


def _is_trained(function: FunctionModel, param: Param) -> bool:
    """A floating tensor with the name of a parameter, in a Function that has nothing to do with quantisation."""
    forward = function.forward
    if forward is None or not is_a(param.name, "trained") or is_a(param.name, "integer"):
        return False
    value = param.declared
    if value.kind not in ("tensor", "unknown") or value.elements in ("integer", "bool"):
        return False
    if any(is_a(name, "frozen") for name in (function.name, *(p.name for p in function.inputs))):
        return False
    uses = [n for n in forward.of(ast.Name) if n.id == param.name]
    return any(
        isinstance(parent, ast.BinOp) or forward.op(parent) is not None
        for parent in map(forward.file.parents.get, uses)
        if parent is not None
    )


def probe(lab: Lab) -> Iterator[Finding]:
    seen: set[str] = set()
    for pair in lab.gradient.wrong:
        name = pair.leaf.name
        if pair.status != "missing" or pair.mismatch is None or name in seen:
            continue
        seen.add(name)
        slot = _wrong_slot(lab, name)
        instead = f", and a gradient for '{slot}', which needs none" if slot else ""
        yield lab.finding(
            f"{lab.target.name}.backward returns None for '{name}'{instead}, but the output depends on it: the "
            f"derivative at {name}{list(pair.mismatch.element or ())} is {pair.mismatch.true:.6g}.",
            argument=name,
            line=lab.line_of_gradient(name),
            cause="swapped" if slot else None,
            advice=_IN_ORDER
            if slot
            else f"Return the gradient of '{name}'; if it must not be trained, pass it detached.",
            evidence={"element": pair.mismatch.element, "true": pair.mismatch.true},
        )
    if lab.surrogate:
        yield from _misplaced(lab, seen)


def _misplaced(lab: Lab, known: set[str]) -> Iterator[Finding]:
    """Forward may be flat, so that no derivative is missing; but a surrogate has a gradient, and it went elsewhere."""
    from gradsmith.lab.measure.raw import raw_pairs

    for pair in raw_pairs(lab):
        slot = _wrong_slot(lab, pair.name) if pair.name not in known else None
        if slot is not None:
            known.add(pair.name)
            yield lab.finding(
                f"{pair.function}.backward returns None for '{pair.name}', which needs a gradient, and a gradient for "
                f"'{slot}', which needs none.",
                function=pair.function,
                argument=pair.name,
                line=lab.line_of_gradient(pair.name),
                cause="swapped",
                advice=_IN_ORDER,
            )


def _wrong_slot(lab: Lab, name: str) -> str | None:
    """The input that needs no gradient and gets one of the shape of this one, which needs it and gets None."""
    from torch import Tensor

    from gradsmith.lab.measure.raw import raw_pairs

    pairs = [pair for pair in raw_pairs(lab) if isinstance(pair.given, Tensor)]
    for pair in (p for p in pairs if p.name == name and p.needed and p.returned is None):
        for other in pairs:
            spare = not other.needed and other.function == pair.function and isinstance(other.returned, Tensor)
            if spare and other.returned.shape == pair.given.shape:
                return other.name
    return None
