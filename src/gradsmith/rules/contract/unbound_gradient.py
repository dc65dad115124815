"""backward returns a gradient that it computes on some branches only

What it finds
-------------
A name that backward returns and assigns only inside an `if` that asks `ctx.needs_input_grad`, an attribute of ctx, or whether
something is None, without a value for the other case.

Why it matters
--------------
The other case raises "cannot access local variable 'grad_weight' where it is not associated with a value". It comes up when
somebody freezes a layer or leaves the bias out, long after the Function was tested.

Known problems
--------------
An `if` whose test also guards the return is left alone, and so is a chain of `elif`s over the values of one option: forward may
have rejected all others.

References
----------
https://docs.pytorch.org/docs/stable/notes/extending.html
Measured on torch 2.13: with a frozen weight the example below raises UnboundLocalError; with every input trained it is right.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradsmith.findings import Edit, Finding
from gradsmith.source.assured import assured
from gradsmith.source.guards import is_none_test
from gradsmith.source.walk import nodes_under

if TYPE_CHECKING:
    from gradsmith.source import FunctionModel, Method, Return

CODE = "GS125"
SEVERITY = "error"
EXPLAINS = ("backward-raised",)
FIXABLE = True
BAD = """
import torch


class Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x @ weight

    @staticmethod
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        grad_x = None
        if ctx.needs_input_grad[0]:
            grad_x = grad_output @ weight.T
        if ctx.needs_input_grad[1]:
            grad_weight = x.T @ grad_output
        return grad_x, grad_weight


def example():
    made = torch.randn(4, 3, dtype=torch.float64), torch.randn(3, 2, dtype=torch.float64)
    return tuple(tensor.requires_grad_() for tensor in made)


gradsmith_inputs = {"Linear": example}
"""
GOOD = BAD.replace("grad_x = None\n", "grad_x = grad_weight = None\n")


def lint(function: FunctionModel) -> Iterator[Finding]:
    backward = function.backward
    if backward is None or backward.inherited or not function.has_gradient:
        return
    known = assured(backward)
    told: set[str] = set()
    for found in backward.returns:
        bound = known.at.get(found.node)
        for name in _returned(found) if bound is not None else ():
            if name.id in bound or name.id in told or not backward.definitions(name):  # type: ignore[operator]
                continue
            test = _only_under(backward, name, found)
            if test is None:
                continue
            told.add(name.id)
            sure = _asks_needs(backward, test)
            yield function.at(
                name,
                f"{function.name}.{backward.name} returns '{name.id}', which it assigns only if `{ast.unparse(test)}`: otherwise this "
                "line raises UnboundLocalError.",
                advice=f"Write `{name.id} = None` at the start of {backward.name}.",
                argument=None,
                severity=None if sure else "warning",
                edits=[_none_first(backward, name.id)],
            )


def _returned(found: Return) -> list[ast.Name]:
    parts = found.node.value.elts if isinstance(found.node.value, ast.Tuple) else [found.node.value]
    return [part for part in parts if isinstance(part, ast.Name)]


def _only_under(backward: Method, name: ast.Name, found: Return) -> ast.expr | None:
    """The test without which the name is unbound, where the author of the return cannot have relied on it."""
    also = {ast.dump(guard.test) for guard in backward.guards(found.node)}
    tests: list[ast.expr] = []
    for binding in backward.definitions(name):
        guards = backward.guards(binding.statement) if binding.statement is not None else []
        if not guards or not any(_is_about_inputs(backward, g.test) for g in guards):
            return None
        if any(ast.dump(g.test) in also for g in guards):
            return None
        tests.append(guards[-1].test)
    # Several branches bind it: a choice among options, of which forward may have refused the rest.
    return tests[0] if len({ast.dump(test) for test in tests}) == 1 else None


def _is_about_inputs(backward: Method, test: ast.expr) -> bool:
    if is_none_test(test) is not None or _asks_needs(backward, test):
        return True
    inner = test.operand if isinstance(test, ast.UnaryOp) else test
    return isinstance(inner, ast.Attribute) and backward.context.is_ctx(inner.value)


def _asks_needs(backward: Method, test: ast.expr) -> bool:
    return any(isinstance(n, ast.Attribute) and n.attr == "needs_input_grad" for n in nodes_under(test)) or any(
        isinstance(n, ast.Name)
        and any(b.value is not None and "needs_input_grad" in ast.unparse(b.value) for b in backward.definitions(n))
        for n in nodes_under(test)
    )


def _none_first(backward: Method, name: str) -> Edit | None:
    from gradsmith.source.edits import insert_before

    body = backward.node.body
    first = (
        body[1]
        if isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant) and len(body) > 1
        else body[0]
    )
    return insert_before(backward.file, first, f"{name} = None")
