"""Shapes that the code itself writes down: `einsum("bi,oij->boj", x, w)`, `rearrange(x, "b c h w -> b (h w) c")`."""

from __future__ import annotations

import ast
import re

Dims = tuple[str, ...]
_EINOPS = frozenset({"rearrange", "reduce", "repeat"})


def equations(body: ast.FunctionDef | ast.AsyncFunctionDef) -> dict[str, Dims]:
    """The dimensions of the parameters that go into an equation as they are, a letter or a word for each.

    >>> equations(ast.parse("def f(x, w): return torch.einsum('bi,io->bo', x, w)").body[0])
    {'x': ('b', 'i'), 'w': ('i', 'o')}
    """
    found: dict[str, Dims] = {}
    parameters = {a.arg for a in (*body.args.posonlyargs, *body.args.args)}
    rebound = {n.id for n in ast.walk(body) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    for node in ast.walk(body):
        if isinstance(node, ast.Call):
            for operand, dims in zip(*_equation(node)):
                if isinstance(operand, ast.Name) and operand.id in parameters - rebound and dims:
                    found.setdefault(operand.id, dims)
    return found


def _equation(call: ast.Call) -> tuple[list[ast.expr], list[Dims]]:
    """The operands of an equation, and the dimensions of each; none where a dimension is not named alone."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    texts = [a.value for a in call.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
    if len(texts) != 1:
        return [], []
    operands = [a for a in call.args if not isinstance(a, ast.Constant)]
    left = texts[0].partition("->")[0]
    if name == "einsum":
        return operands, [tuple(part) if part.isalpha() else () for part in left.replace(" ", "").split(",")]
    if name in _EINOPS and re.fullmatch(r"[\w ]+", left):
        return operands[:1], [tuple(left.split())]
    return [], []
