"""the initial state of a loop is made on the default device

What it finds
-------------
`h = torch.zeros(batch, size)` without `device=` in an nn.Module, where `h` is the state that a loop carries on.

Why it matters
--------------
It works on the CPU. After `.to("cuda")` the layer's input lives on the GPU and its first state does not: "Expected all
tensors to be on the same device". With `.double()` or `.bfloat16()` the dtypes differ as well.

Known problems
--------------
A state that is moved by a function this tool does not see is reported too.

References
----------
https://github.com/Lightning-AI/pytorch-lightning/issues/17299
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradsmith.findings import Finding
from gradsmith.source import knowledge as know
from gradsmith.source.creation import creations, with_options
from gradsmith.source.loops import carried
from gradsmith.source.walk import nodes_under

if TYPE_CHECKING:
    from gradsmith.source import LayerModel, Method

CODE = "GS705"
SEVERITY = "warning"
EXPLAINS = ()
FIXABLE = True
BAD = """
import torch
from torch import nn


class Smooth(nn.Module):
    def forward(self, x):
        state = torch.zeros(x.shape[1], x.shape[2])
        states = []
        for now in x.unbind(0):
            state = 0.9 * state + 0.1 * torch.tanh(now)
            states.append(state)
        return torch.stack(states)


gradsmith_inputs = {"Smooth": lambda: (torch.randn(6, 2, 4, requires_grad=True),)}
"""
GOOD = BAD.replace("x.shape[2])", "x.shape[2], device=x.device, dtype=x.dtype)")


def lint_layer(layer: LayerModel) -> Iterator[Finding]:
    for method in layer.methods.values():
        loops = [loop for loop in layer.loops if loop.method is method]
        # What is made is seen at once; what a loop carries takes the flow of the whole method.
        made = list(creations(method)) if loops else []
        state = frozenset(name for loop in loops if made for name in carried(loop))
        if not state:
            continue
        for creation in made:
            names = _assigned(method, creation.node) & state
            like = _tensor_at_hand(method)
            placeholder = all(isinstance(a, ast.Constant) for a in creation.node.args)
            if not names or like is None or creation.counts or placeholder or _device_chosen(method, creation.node):
                continue
            name = min(names)
            if _moved_when_read(method, creation.node, name):
                continue
            yield layer.at(
                creation.node,
                f"{layer.name}.{method.name} makes the state '{name}' on the CPU: with inputs on a GPU the first step of the loop raises "
                "RuntimeError.",
                advice=f"Write `device={like}.device`. If the inputs can be float64 or float16, write `dtype={like}.dtype`, too.",
                argument=name,
                edits=[with_options(method, creation, like, dtype_too=False)],
            )


def _device_chosen(method: Method, node: ast.expr) -> bool:
    """`if x.is_cuda: h = torch.zeros(n).cuda()`, and this is the other branch."""
    tested = [n for guard in method.guards(node) for n in nodes_under(guard.test)]
    return any(isinstance(n, ast.Attribute) and n.attr in know.ABOUT_DEVICES for n in tested)


def _moved_when_read(method: Method, node: ast.expr, name: str) -> bool:
    """`state[1:].to(device)` wherever it is read: what was made on the wrong device does not stay there."""
    statement = method.statement(node)
    reads = [n for n in method.of(ast.Name) if isinstance(n.ctx, ast.Load) and n.id == name]
    reached = [n for n in reads if any(method.statement(b.node) is statement for b in method.definitions(n))]
    return bool(reached) and all(_is_moved(method, n) for n in reached)


def _is_moved(method: Method, read: ast.Name) -> bool:
    child: ast.AST = read
    for parent in method.ancestors(read):
        on_it = getattr(parent, "value", None) is child or getattr(parent, "func", None) is child
        if not (isinstance(parent, (ast.Attribute, ast.Subscript, ast.Call)) and on_it):
            return False
        if isinstance(parent, ast.Attribute) and parent.attr in know.MOVES:
            return True
        child = parent
    return False


def _assigned(method: Method, node: ast.expr) -> set[str]:
    """Names that get this very tensor, alone or as one of several."""
    statement = method.statement(node)
    if not isinstance(statement, ast.Assign):
        return set()
    names: set[str] = set()
    for target in statement.targets:
        if isinstance(target, ast.Name) and statement.value is node:
            names.add(target.id)
        if isinstance(target, ast.Tuple) and isinstance(statement.value, ast.Tuple):
            pairs = zip(target.elts, statement.value.elts)
            names |= {t.id for t, v in pairs if v is node and isinstance(t, ast.Name)}
    return names


def _tensor_at_hand(method: Method) -> str | None:
    """A parameter whose shape or size is asked for."""
    asked = {
        n.value.id
        for n in method.nodes
        if isinstance(n, ast.Attribute) and n.attr in know.TENSOR_SIGNS and isinstance(n.value, ast.Name)
    }
    return next((p.name for p in method.positional if p.name in asked), None)
