"""Names for values that have none: made of the operation and of the names of its operands."""

from __future__ import annotations

from torch import Tensor

from gradsmith.deriving.algebra import from_output
from gradsmith.deriving.node import Node, is_number
from gradsmith.source import knowledge as know

_WORDS = {
    "mul": "product",
    "div": "quotient",
    "add": "total",
    "sub": "difference",
    "pow": "power",
    "matmul": "product",
    "getitem": "part",
    "sum": "total",
    "reshape": "reshaped",
    "mT": "transposed",
    "where": "chosen",
    "vector_norm": "norm",
    "to": "cast",
    "item": "part",
    "clamp": "clamped",
    "gather": "picked",
    "and": "mask",
    "expand": "spread",
    "unsqueeze": "column",
    "new_zeros": "zeros",
    "masked_fill": "masked",
    "sum_to_size": "summed",
    "scatter_add": "scattered",
    "permute": "permuted",
    "vjp": "pulled",
    "or": "mask",
    "neg": "minus",
}
# What may stand between a name and what is named after it: `sqrt_var` of var + eps, but no `tanh_x` of tanh(softplus(x)).
_ARITHMETIC = (
    "add",
    "sub",
    "mul",
    "div",
    "neg",
    "pow",
    "matmul",
    "mT",
    "to",
    "clamp",
    "unsqueeze",
    "reshape",
    "getitem",
)
_LIGHT = {*_ARITHMETIC, "vector_norm", "sum", "mean", "amax", "amin"}


def label(node: Node) -> str:
    """A name that says what the value is."""
    if node.name:
        return node.name
    if node.back and node.near is not None and node.near is not node:
        return f"grad_{label(node.near)}"
    if node.back and node.is_tensor and node.op not in know.COMPARISONS and not from_output(node):
        return "slope" if _multiplies_a_gradient(node) else _by_operation(node)
    if node.back and node.terms_of is not None:
        return f"grad_{label(node.terms_of)}_terms"
    return _by_operation(node)


def _multiplies_a_gradient(node: Node) -> bool:
    """Is there `g * node`, with a g that is made of grad_output?"""
    users = (n for n in node.graph.pool.values() if n.op == "mul" and n.back and any(a is node for a in n.args))
    return any(from_output(other) for n in users for other in n.args if other is not node)


def _by_operation(node: Node) -> str:
    if node.op == "create":
        return str(node.args[0]).rpartition(".")[2]
    if node.op in ("assign", "placed"):
        return label(node.args[0])
    if node.op in know.COMPARISONS or node.op == "invert":
        return "mask"
    if (
        node.op == "item"
        and node.args[1] == 1
        and isinstance(node.value, Tensor)
        and not node.value.is_floating_point()
    ):
        return "indices"
    names = list(dict.fromkeys(n.name for n in node.operands if n.name and n.is_tensor))
    if len(names) == 2 and len("".join(names)) < 20:
        joining = {"sub": "minus", "add": "plus", "div": "over", "mul": "times"}.get(node.op)
        if joining:
            return f"{names[0]}_{joining}_{names[1]}"
    if node.op == "mul" and len(names) == 1 and is_number(node.args[0]):
        return f"{'half' if is_number(node.args[0], 0.5) else 'scaled'}_{names[0]}"
    if node.op == "sub" and is_number(node.args[0], 1) and names:
        return f"one_minus_{names[0]}"
    if not names:
        light = [n for n in node.operands if n.op in _LIGHT]
        inner = {m.name for n in light for m in n.operands if m.name and m.is_tensor}
        names = [name for name in inner if name] if len(inner) == 1 else []
    word = _WORDS.get(node.op, node.op)
    return f"{word}_{names[0]}" if len(names) == 1 and len(names[0]) < 12 else word


def unique(base: str, taken: set[str], instead: str = "") -> str:
    """The name, or the one to take instead, or with a number behind it the first that is free."""
    name, count = instead if instead and base in taken else base, 1
    while name in taken:
        count += 1
        name = f"{base}_{count}" if base[-1].isdigit() else f"{base}{count}"
    taken.add(name)
    return name
