"""What the methods of a Function use besides their arguments and ctx: other generators, globals, addresses, the environment.

Autograd, checkpoint, compile and DDP run the methods of a Function elsewhere, later or twice. Whatever is looked up outside may
have another value there.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from gradsmith.source import knowledge as know
from gradsmith.source.method import Method
from gradsmith.source.model import FunctionModel

Kind = Literal["draw", "address", "process", "compiler", "thread", "state"]

# By the beginning of the dotted name. What is none of these, and is written to by the Function itself, is state.
_KINDS: tuple[tuple[str, Kind], ...] = (
    ("random.", "draw"), ("numpy.random.", "draw"), ("secrets.", "draw"),
    ("os.environ", "process"), ("os.getenv", "process"), ("torch.distributed.", "process"),
    ("torch.compiler.is_", "compiler"), ("torch._dynamo.is_", "compiler"),
    ("threading.local", "thread"), ("threading.get_", "thread"), ("threading.current_thread", "thread"),
)  # fmt: skip


@dataclass(frozen=True)
class Outside:
    """One use: what is looked up, as the source spells it, where, and in which method."""

    kind: Kind
    shown: str
    node: ast.expr
    method: Method

    @property
    def line(self) -> int:
        return self.node.lineno


def outside(model: FunctionModel, *kinds: Kind, methods: tuple[str, ...] = ("forward", "setup_context", "backward")) -> list[Outside]:  # fmt: skip
    """The uses of these kinds in the order of `kinds`, then of the source; only those that stand in the file of the class."""
    own = [m for name in methods if (m := model.method(name)) is not None and model.owner(m.node) is model.file]
    found = [use for method in own for use in _uses(model, method)]
    return [use for kind in kinds for use in sorted(found, key=lambda u: u.line) if use.kind == kind]


def _uses(model: FunctionModel, method: Method) -> Iterator[Outside]:
    for call in method.calls:
        if call.op == "data_ptr" or (call.dotted == "id" and call.node.args):
            yield Outside("address", ast.unparse(call.node), call.node, method)
    inner = {id(n.value) for n in method.of(ast.Attribute)}
    for node in method.nodes:
        if isinstance(node, (ast.Name, ast.Attribute)) and id(node) not in inner:  # whole chains only
            kind = _kind(model, method, node)
            if kind is not None:
                yield Outside(kind, ast.unparse(node), node, method)


def _kind(model: FunctionModel, method: Method, node: ast.Name | ast.Attribute) -> Kind | None:
    dotted = method.dotted(node) or ""
    root = node
    while isinstance(root, ast.Attribute) and isinstance(root.value, (ast.Name, ast.Attribute)):
        root = root.value
    made = None
    if not isinstance(root, ast.Name) or not method.is_free(root):  # a name of the method's own, whatever it is called
        dotted = ""
    else:  # `RNG.random` is a draw where RNG is a generator of NumPy
        made = method.file.value_of(root.id)
        if isinstance(made, ast.Call):
            dotted = f"{method.file.dotted(made.func) or ''}{dotted.removeprefix(root.id)}"
    kind = next((k for beginning, k in _KINDS if dotted.startswith(beginning)), None)
    return kind or ("state" if _is_written(model, method, node, root, made) else None)


def _is_written(
    model: FunctionModel, method: Method, node: ast.Name | ast.Attribute, root: ast.expr, made: ast.expr | None
) -> bool:
    """Whether this statement changes what outlives the call: a global, an item of it, an attribute of the class."""
    if not isinstance(root, ast.Name):
        return False
    lasting = made is not None or root.id == model.name
    declared = any(root.id in n.names for n in method.of(ast.Global))
    if not (lasting or declared):
        return False
    if not isinstance(node.ctx, ast.Load):
        return isinstance(node, ast.Attribute) or declared
    parent = method.file.parents.get(node)
    if isinstance(parent, ast.Subscript) and parent.value is node:
        return not isinstance(parent.ctx, ast.Load)
    called = isinstance(parent, ast.Call) and parent.func is node
    return called and isinstance(node, ast.Attribute) and node.attr in know.CHANGES_CONTAINER
