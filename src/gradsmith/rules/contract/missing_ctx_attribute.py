"""backward reads an attribute of ctx that forward sets on some paths only

What it finds
-------------
`ctx.name` that backward reads unconditionally, and that forward (or setup_context) sets in a branch, or after a `return` of another
branch, without setting it on every way to its end.

Why it matters
--------------
On the other paths backward raises "'SquareBackward' object has no attribute 'name'": for the empty batch, in eval mode, without
the option. Forward itself works there, so tests of the output pass.

Known problems
--------------
Reads under an `if`, and through getattr or hasattr, are left alone, and so is a branch of forward that asks `needs_input_grad` or the
inference mode, or asserts it: backward does not run where nothing needs a gradient. So is a flag around all that forward keeps, saved
tensors included: without it there is nothing for backward to work with.

References
----------
https://docs.pytorch.org/docs/stable/generated/torch.autograd.function.FunctionCtx.html
Measured on torch 2.13: the example below raises AttributeError in backward for an empty batch, and is right otherwise.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradsmith.findings import Edit, Finding
from gradsmith.source.assured import assured
from gradsmith.source.edits import delete_lines, insert_before
from gradsmith.source.lexicon import is_a
from gradsmith.source.walk import nodes_under

if TYPE_CHECKING:
    from gradsmith.source import FunctionModel, Method
    from gradsmith.source.context import AttributeWrite

_MODES = frozenset(("torch.is_inference_mode_enabled", "torch.is_grad_enabled"))
CODE = "GS126"
SEVERITY = "warning"
EXPLAINS = ("backward-raised",)
FIXABLE = True
BAD = """
import torch


class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor):
        if x.numel() == 0:
            return x.clone()
        ctx.factor = factor
        return x * factor

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * ctx.factor, None


gradsmith_inputs = {"Scaled": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True), 2.0)}
"""
GOOD = BAD.replace(
    "        if x.numel() == 0:\n            return x.clone()\n        ctx.factor = factor\n",
    "        ctx.factor = factor\n        if x.numel() == 0:\n            return x.clone()\n",
)


def lint(function: FunctionModel) -> Iterator[Finding]:
    backward = function.backward
    if backward is None or not function.has_gradient or function.ctx_escapes:
        return
    if _is_mode(function):
        return
    ways = {method: assured(method) for method in function.before if method.ctx is not None}
    missing: dict[str, AttributeWrite] = {}
    for read in function.ctx_reads:
        writes = [w for w in function.ctx_writes if w.attr == read.attr]
        if read.attr in missing or not writes or not isinstance(read.node, ast.Attribute):
            continue
        if _is_conditional(backward, read.node) or any(w.attr == read.attr for w in backward.context.writes):
            continue
        left = {m: found.missing_at(f"ctx.{read.attr}") for m, found in ways.items()}
        if any(not without for without in left.values()):
            continue
        ends = [(method, way) for method, without in left.items() for way in without]
        if all(way is not None and _without_gradients(method, way) for method, way in ends):
            continue
        if not any(_asks_for_gradients(w.method, w.node) for w in writes):
            missing[read.attr] = writes[0]
    if missing:
        writes = sorted(missing.values(), key=lambda w: w.node.lineno)
        names, first = [f"ctx.{w.attr}" for w in writes], writes[0]
        shown = names if len(names) <= 3 else [*names[:2], f"{len(names) - 2} more"]
        listed = " and ".join([part for part in (", ".join(shown[:-1]), shown[-1]) if part])
        yield function.at(
            first.node,
            f"{function.name}.{first.method.name} sets {listed} only on some paths, but {backward.name} always "
            f"reads {'it' if len(names) == 1 else 'them'}: after the other paths, {backward.name} raises AttributeError.",
            advice=f"Set {listed} before the first `if` or `return` of {first.method.name}.",
            edits=[edit for write in writes for edit in _moved_to_front(write)],
        )


def _moved_to_front(write: AttributeWrite) -> list[Edit | None]:
    """What is a constant, or was handed to forward and is still that, can as well be kept at once."""
    method, statement = write.method, write.statement
    value = write.value
    given = value is not None and (isinstance(value, ast.Constant) or method.param_of(value) is not None)
    if not given or not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return [None]
    body = method.node.body
    documented = isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant) and len(body) > 1
    text = method.file.source_of(statement)
    return [insert_before(method.file, body[1 if documented else 0], text), delete_lines(method.file, statement)]


def _is_conditional(backward: Method, node: ast.AST) -> bool:
    return (
        bool(backward.guards(node))
        or backward.in_nested_function(node)
        or any(isinstance(parent, (ast.Try, ast.IfExp)) for parent in backward.ancestors(node))
    )


def _is_mode(function: FunctionModel) -> bool:
    """`if training:` around all that forward keeps, saved tensors included: the flag says whether there will be a backward."""
    kept = [(w.method, w.node) for w in function.ctx_writes] + [(s.method, s.node) for s in function.saves]
    flags = [{g.test.id for g in m.guards(n) if g.positive and isinstance(g.test, ast.Name)} for m, n in kept]
    common = set.intersection(*flags) if flags else set()
    return bool(common) and (bool(function.saves) or any(is_a(name, "backward wanted") for name in common))


def _asks_for_gradients(method: Method, node: ast.AST) -> bool:
    """Under a condition that asks whether something is to be differentiated, also through a name."""
    tests = [n for guard in method.guards(node) for n in nodes_under(guard.test)]
    tests += [n for name in tests if isinstance(name, ast.Name) for n in nodes_under(method.resolve(name))]
    return any(isinstance(n, ast.Attribute) and n.attr in ("needs_input_grad", "requires_grad") for n in tests)


def _without_gradients(method: Method, way: ast.Return) -> bool:
    """Where forward leaves early for want of anything to differentiate, backward never runs.

    The condition says so, or an assertion before the return does.
    """
    block = next((b for b in _blocks(method.file.parents[way]) if way in b), [])
    asserted = [n for s in block if isinstance(s, ast.Assert) for n in nodes_under(s.test)]
    tested = [n for guard in method.guards(way) for n in nodes_under(guard.test)]
    named = [n for n in (*asserted, *tested) if isinstance(n, (ast.Attribute, ast.Name))]
    if any(method.dotted(n) in _MODES or is_a(ast.unparse(n), "export") for n in named):
        return True
    return _asks_for_gradients(method, way)


def _blocks(node: ast.AST) -> list[list[ast.stmt]]:
    return [getattr(node, field, None) or [] for field in ("body", "orelse", "finalbody")]
