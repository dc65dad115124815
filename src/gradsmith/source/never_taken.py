"""Branches of backward that are never taken: they ask an attribute of ctx to which forward always gives the same constant,
or whether a grad_output is None, which PyTorch fills with zeros unless it was told not to."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gradsmith.source.model import FunctionModel


def lines(function: FunctionModel) -> list[range]:
    """The lines of such branches, in the file in which backward stands."""
    backward = function.backward
    if backward is None or function.ctx_escapes:
        return []
    constants = dict(_constants(function)) if function.ctx_reads else {}
    found = []
    for node in backward.of(ast.If) if constants or function.materializes else ():
        if (truth := _truth(function, node.test, constants)) is not None:
            block = node.orelse if truth else node.body
            if block:
                found.append(range(block[0].lineno, (block[-1].end_lineno or block[-1].lineno) + 1))
    return found


def _constants(function: FunctionModel) -> Iterator[tuple[str, bool]]:
    """Attributes that only constants of the same truth are assigned to, and which."""
    everywhere = [*function.ctx_writes, *(function.backward.context.writes if function.backward else ())]
    for name in {w.attr for w in everywhere}:
        written = [w.value for w in everywhere if w.attr == name]
        truths = {bool(v.value) if isinstance(v, ast.Constant) else None for v in written}
        if truths in ({True}, {False}):
            yield name, truths == {True}


def _truth(function: FunctionModel, test: ast.expr, constants: dict[str, bool]) -> bool | None:
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = _truth(function, test.operand, constants)
        return None if inner is None else not inner
    assert function.backward is not None
    if isinstance(test, ast.Compare) and isinstance(test.ops[0], (ast.Is, ast.IsNot)):
        none = isinstance(test.comparators[0], ast.Constant) and test.comparators[0].value is None
        return isinstance(test.ops[0], ast.IsNot) if none and _is_filled(function, test.left) else None
    if isinstance(test, ast.Attribute) and function.backward.context.is_ctx(test.value):
        return constants.get(test.attr)
    return None


def _is_filled(function: FunctionModel, node: ast.expr) -> bool:
    """A grad_output as backward was given it, which is never None."""
    backward = function.backward
    if backward is None or not isinstance(node, ast.Name) or not function.materializes:
        return False
    parameter = backward.param(node.id)
    given = parameter is not None and parameter.role == "grad_output"
    rebound = any(
        isinstance(n, ast.Name) and n.id == node.id and not isinstance(n.ctx, ast.Load) for n in backward.nodes
    )
    return given and not rebound
