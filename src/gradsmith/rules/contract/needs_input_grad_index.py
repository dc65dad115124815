"""needs_input_grad is asked about the wrong input

What it finds
-------------
`ctx.needs_input_grad[i]` guards the gradient that backward returns at another position j; and an index beyond the number of
inputs.

Why it matters
--------------
The gradient at j stays None whenever input i needs none, though input j does: freezing one parameter stops the training
of another, silently. An index out of range raises IndexError in backward.

Known problems
--------------
A guard that looks at several inputs is accepted when the right one is among them.

References
----------
https://docs.pytorch.org/docs/stable/notes/extending.html
Measured on torch 2.13: with the index of `x` guarding the gradient of `weight`, `weight.grad` is None for an input that
needs no gradient.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from gradsmith.findings import Finding, plural
from gradsmith.source.guards import needs_indices

if TYPE_CHECKING:
    from gradsmith.source import FunctionModel, Method

CODE = "GS118"
SEVERITY = "error"
EXPLAINS = ("frozen-input", "none-for-tensor", "backward-raised", "wasted-gradient")
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
        grad_x = grad_weight = None
        if ctx.needs_input_grad[1]:
            grad_x = grad_output @ weight.t()
        if ctx.needs_input_grad[0]:
            grad_weight = x.t() @ grad_output
        return grad_x, grad_weight


def example():
    x = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    return x, torch.randn(3, 5, dtype=torch.float64, requires_grad=True)


gradsmith_inputs = {"Product": example}
"""
GOOD = BAD.replace("grad[1]:\n            grad_x", "grad[0]:\n            grad_x").replace(
    "grad[0]:\n            grad_weight", "grad[1]:\n            grad_weight"
)


def lint(function: FunctionModel) -> Iterator[Finding]:
    forward, backward = function.forward, function.backward
    if forward is None or backward is None or any(p.kind != "positional" for p in function.inputs):
        return
    yield from _out_of_range(function, backward)
    guarded = {p.index: _guarded_by(function, backward, p.index) for p in function.inputs}
    said: dict[int, Finding] = {}  # by the test: several gradients under one test are one mistake
    for param in function.inputs:
        tested = guarded[param.index]
        if not tested or param.index in tested.indices or len(tested.indices) != 1:
            continue
        (other,) = tested.indices
        asked = function.input_at(other)
        if asked is None:
            continue
        # When the other input's own gradient hangs on its own entry, this one may be computed along with it on purpose.
        own = guarded[other]
        swapped = own is None or other not in own.indices
        if id(tested.node) in said:
            said[id(tested.node)] = _also(said[id(tested.node)], param.name)
            continue
        said[id(tested.node)] = function.at(
            tested.node,
            f"{function.name}.{backward.name} computes the gradient of '{param.name}' only if needs_input_grad[{other}] says "
            f"so, which is about '{asked.name}'.",
            advice=f"Write `ctx.needs_input_grad[{param.index}]`, which is about '{param.name}'.",
            argument=param.name,
            severity=None if swapped else "warning",
        )
    yield from said.values()


def _also(finding: Finding, name: str) -> Finding:
    return replace(finding, message=finding.message.replace(" only if", f" and '{name}' only if", 1))


class _Guarded:
    """A test on the way to a gradient, and the entries of needs_input_grad it looks at."""

    def __init__(self, node: ast.AST, indices: frozenset[int]) -> None:
        self.node = node
        self.indices = indices


def _guarded_by(function: FunctionModel, method: Method, index: int) -> _Guarded | None:
    """The test under which the gradient at this position is computed, if every way to compute it has the same."""
    found: list[_Guarded] = []
    for gradient in function.gradients_of(index) or ():
        for value in _computed(method, gradient):
            tests = [g for g in method.guards(value) if g.positive]
            named = [(g, needs_indices(method, g.test)) for g in tests]
            if any(indices is None for _, indices in named):
                return None
            used = [(g, indices) for g, indices in named if indices]
            if not used:
                return None
            found.append(_Guarded(used[0][0].test, frozenset().union(*(i for _, i in used if i))))
    if not found or any(f.indices != found[0].indices for f in found):
        return None
    return found[0]


def _computed(method: Method, node: ast.expr) -> list[ast.AST]:
    """The places that give this gradient a value other than None."""
    if isinstance(node, ast.IfExp):
        return [n for part in (node.body, node.orelse) for n in _computed(method, part)]
    if isinstance(node, ast.Constant):
        return []
    if isinstance(node, ast.Name):
        found: list[ast.AST] = []
        for binding in method.definitions(node):
            if binding.how == "assign" and binding.value is not None:
                found += _computed(method, binding.value) if not isinstance(binding.value, ast.Name) else [binding.node]
            else:
                found.append(binding.node)
        return found
    return [node]


def _out_of_range(function: FunctionModel, method: Method) -> Iterator[Finding]:
    count = len(function.inputs)
    for node in method.of(ast.Subscript):
        if not (method.context.is_needs(node.value)):
            continue
        index = node.slice.value if isinstance(node.slice, ast.Constant) else None
        if isinstance(index, int) and index >= count:
            yield function.at(
                node,
                f"{function.name}.{method.name} reads needs_input_grad[{index}], but forward has {plural(count, 'input')}.",
                advice="Count the arguments of forward from 0, without ctx.",
            )
