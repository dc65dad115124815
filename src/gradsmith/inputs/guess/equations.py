"""Shapes that the code itself writes down: `einsum("bi,oij->boj", x, w)`, `rearrange(x, "b c h w -> b (h w) c")`, and those
that an operation of torch takes: `conv2d(x, w)` has four dimensions each.
"""

from __future__ import annotations

import ast
import re

from gradsmith.source import knowledge as know

Dims = tuple[str, ...]
_EINOPS = frozenset({"rearrange", "reduce", "repeat"})
# The dimensions of the first operands, where torch allows nothing else. A kernel is smaller than what it moves over.
_OPERANDS: dict[str, tuple[str, ...]] = {
    "conv1d": ("N C L", "O C 3", "O"),
    "conv2d": ("N C H W", "O C 3 2", "O"),
    "conv3d": ("N C D H W", "O C 2 3 2", "O"),
    "conv_transpose1d": ("N C L", "C O 3", "O"),
    "conv_transpose2d": ("N C H W", "C O 3 2", "O"),
    "conv_transpose3d": ("N C D H W", "C O 2 3 2", "O"),
    "linear": ("N I", "O I", "O"),
    "bilinear": ("N I", "N J", "O I J", "O"),
    "addmm": ("n p", "n m", "m p"),
    "mm": ("n m", "m p"),
    "bmm": ("B n m", "B m p"),
    "baddbmm": ("B n p", "B n m", "B m p"),
    "mv": ("n m", "m"),
    "outer": ("n", "m"),
    "unfold": ("N C H W",),
    "grid_sample": ("N C H W", "N h w 2"),
    "affine_grid": ("N 2 3",),
    "scaled_dot_product_attention": ("B H L E", "B H S E", "B H S V"),
    "batch_norm": ("N C H", "C", "C", "C", "C"),
    **{f"{kind}_pool{n}d": (" ".join("NCDHW"[:2] + "DHW"[3 - n :]),)
       for kind in ("max", "avg", "adaptive_avg", "adaptive_max", "lp") for n in (1, 2, 3)},
    **dict.fromkeys(sorted(know.OF_SQUARE), ("n n",)),
}  # fmt: skip


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


def _of(name: str, dims: str) -> Dims:
    """The dimensions of one operation have names of their own: another operation may call another size N."""
    return tuple(dim if dim.isdigit() else f"{name}_{dim}" for dim in dims.split())


def _equation(call: ast.Call) -> tuple[list[ast.expr], list[Dims]]:
    """The operands of an equation, and the dimensions of each; none where a dimension is not named alone."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    texts = [a.value for a in call.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
    operands = [a for a in call.args if not isinstance(a, ast.Constant)]
    if name in _OPERANDS:
        return call.args[: len(_OPERANDS[name])], [_of(name, dims) for dims in _OPERANDS[name]]
    if len(texts) != 1:
        return [], []
    left = texts[0].partition("->")[0]
    if name == "einsum":
        return operands, [tuple(part) if part.isalpha() else () for part in left.replace(" ", "").split(",")]
    if name in _EINOPS and re.fullmatch(r"[\w ]+", left):
        return operands[:1], [tuple(left.split())]
    return [], []
