"""a tensor is kept in a container of the module

What it finds
-------------
forward or backward puts a tensor into a dict, list or set at the top of the file (`_CACHE[key] = x`, `_SEEN.append(grad)`), and
nothing in the file ever takes one out again.

Why it matters
--------------
The container lives as long as the program: every tensor in it stays, with its graph if it has one. Memory grows with every step, or with
every new key, and a key that is an `id(...)` or a pointer soon means another tensor.

Known problems
--------------
Numbers, shapes and detached scalars are left alone, and so is a container that the file clears, pops from or assigns again. weakref
containers do not hold what they are given.

References
----------
https://docs.pytorch.org/docs/stable/notes/faq.html#my-model-reports-cuda-runtime-error-2-out-of-memory
Measured on torch 2.13: 100 calls of the example below on tensors of 1 MiB keep 100 MiB.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradsmith.findings import Finding

if TYPE_CHECKING:
    from gradsmith.source import FunctionModel, Method

CODE = "GS407"
SEVERITY = "warning"
EXPLAINS = ("class-state",)
BAD = """
import torch

_SEEN = []


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        _SEEN.append(x)
        return x * x

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * 2 * x


gradsmith_inputs = {"Square": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
"""
GOOD = BAD.replace("        _SEEN.append(x)\n", "        _SEEN.append(x.shape)\n")
_PUTS = ("append", "add", "insert", "extend", "setdefault")


def lint(function: FunctionModel) -> Iterator[Finding]:
    methods = (function.forward, function.setup_context, function.backward)
    for method in (m for m in methods if m is not None and not m.inherited):
        for node in method.nodes:
            for holder, kept in _put(node):
                if _is_container(method, holder) and _is_tensor(function, method, kept):
                    name, shown = holder.id, ast.unparse(kept)
                    yield function.at(
                        node,
                        f"{function.name}.{method.name} puts the tensor '{shown}' into {name}, from which nothing takes it out: it "
                        "stays in memory until the program ends.",
                        advice="Keep what backward needs on ctx; a cache wants a bound, or a weakref.WeakKeyDictionary.",
                    )


def _put(node: ast.AST) -> list[tuple[ast.Name, ast.expr]]:
    """`seen[key] = value`, `seen.append(value)`: the container and what is put into it."""
    if isinstance(node, ast.Assign):
        held = [t.value for t in node.targets if isinstance(t, ast.Subscript)]
        return [(h, node.value) for h in held if isinstance(h, ast.Name)]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _PUTS and node.args:
        holder = node.func.value
        return [(holder, node.args[-1])] if isinstance(holder, ast.Name) else []
    return []


def _is_container(method: Method, name: ast.Name) -> bool:
    """A dict, list or set that the file makes once at its top and never empties."""
    if not method.is_free(name):
        return False
    made = method.file.value_of(name.id)
    called = method.dotted(made.func) if isinstance(made, ast.Call) else None
    literal = isinstance(made, (ast.Dict, ast.List, ast.Set)) or called in (
        "dict",
        "list",
        "set",
        "collections.defaultdict",
    )
    if not literal:
        return False
    taken = rf"\b{name.id}\.(?:clear|pop|popitem|remove|popleft)\(|\bdel {name.id}\b|\bglobal [^\n]*\b{name.id}\b"
    return re.search(taken, method.file.text) is None


def _is_tensor(function: FunctionModel, method: Method, node: ast.expr) -> bool:
    value = method.value(node)
    param = method.param_of(node)
    if value.kind == "unknown" and param is not None and param.role == "input":
        return function.gives_gradient(param.index) is True
    if value.kind not in ("tensor", "unknown") or value.elements in ("integer", "bool"):
        return False
    owned = any(s.owner in ("input", "grad_output", "saved", "output") for s in method.sources(node))
    return value.is_tensor and (owned or not value.constant)
