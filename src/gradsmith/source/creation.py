"""Tensors made without a device: where they are made, and how to say where they belong."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from gradsmith.findings import Edit
from gradsmith.source import knowledge as know

if TYPE_CHECKING:
    from gradsmith.source.method import Method

_COUNTING = frozenset(("arange", "randint", "randperm"))


class Creation(NamedTuple):
    """`torch.zeros(n)` with neither `device=` nor a later `.to(...)`; `counts` when its default dtype is an integer."""

    node: ast.Call
    op: str
    has_dtype: bool

    @property
    def counts(self) -> bool:
        return self.op in _COUNTING


def creations(method: Method) -> Iterator[Creation]:
    """Every tensor this method makes on the default device, unless the code around it chooses the device."""
    if chooses_device(method):
        return
    for node in method.of(ast.Call):
        op = know.bare_op(method.dotted(node.func))
        if op not in know.FACTORIES or _is_placeholder(node):
            continue
        options = {k.arg for k in node.keywords}
        if options & {"device", "out", None} or _is_moved(method, node):
            continue
        yield Creation(node, op, "dtype" in options)


def chooses_device(method: Method) -> bool:
    """`with torch.device(...)`, or a call that sets the default."""
    blocks: list[ast.With | ast.AsyncWith] = [*method.of(ast.With), *method.of(ast.AsyncWith)]
    for node in blocks:
        names = [_called(method, item.context_expr) for item in node.items]
        if any(name is not None and name.endswith("device") for name in names):
            return True
    return method.file.mentions("set_default_device", "set_default_tensor_type")


def _called(method: Method, node: ast.expr) -> str | None:
    return method.dotted(node.func if isinstance(node, ast.Call) else node)


def _is_placeholder(node: ast.Call) -> bool:
    """`torch.empty(0)`, `torch.zeros(())`: nothing in it, or a number, which mixes with tensors of any device."""
    sizes = [a.value for a in node.args if isinstance(a, ast.Constant)]
    no_sizes = bool(node.args) and isinstance(node.args[0], (ast.Tuple, ast.List)) and not node.args[0].elts
    return no_sizes or 0 in sizes or not node.args


def _is_moved(method: Method, node: ast.expr) -> bool:
    """`.to(x)` follows, at once or wherever the name it is assigned to is used first."""
    parents = method.file.parents
    current: ast.AST = node
    while True:
        parent = parents.get(current)
        if isinstance(parent, ast.Attribute) and parent.value is current:
            if parent.attr in know.MOVES:
                return True
            current = parents.get(parent, parent)
            continue
        break
    statement = method.statement(node)
    if not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], ast.Name):
        return False
    name = statement.targets[0].id
    return any(
        isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name) and n.value.id == name and n.attr in know.MOVES
        for n in method.nodes
    )


def with_options(method: Method, creation: Creation, like: str, dtype_too: bool = True) -> Edit:
    """`torch.zeros(n)` -> `torch.zeros(n, device=like.device, dtype=like.dtype)`."""
    from gradsmith.source.edits import replace

    text = method.file.source_of(creation.node)
    inside = text[:-1].rstrip()
    inside = inside.removesuffix(",")
    dtype = "" if creation.has_dtype or creation.counts or not dtype_too else f", dtype={like}.dtype"
    return replace(method.file, creation.node, f"{inside}, device={like}.device{dtype})")
