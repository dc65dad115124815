"""a hook writes into the gradient it was given

What it finds
-------------
`tensor.register_hook(...)` with a lambda or a function of the same file that changes its argument in place: `g.mul_(2)`,
`g *= mask`, `g[i] = 0`.

Why it matters
--------------
The tensor that a hook gets is not its own: other branches of the graph may be about to read it. The documentation says so ("The
hook should not modify its argument"), nothing enforces it, and gradients of other tensors change.

Known problems
--------------
Where no other branch shares the tensor, the hook does what was meant; sharing depends on the rest of the graph.

References
----------
https://docs.pytorch.org/docs/stable/generated/torch.Tensor.register_hook.html
https://github.com/meta-pytorch/opacus/issues/9
Measured on torch 2.13: with `z = a + b` and a hook `lambda g: g.mul_(10)` on `a`, `b.grad` is 10 instead of 1.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradsmith.findings import Edit, Finding
from gradsmith.source import Method
from gradsmith.source import knowledge as know
from gradsmith.source.method import read_params
from gradsmith.source.walk import nodes_under

if TYPE_CHECKING:
    from gradsmith.source import FileModel

CODE = "GS226"
SEVERITY = "warning"
EXPLAINS = ("inplace-grad",)
FIXABLE = True
TRIGGERS = (".register_hook(",)
BAD = """
import torch


class Scaled(torch.nn.Module):
    def forward(self, x):
        y = x * 2
        y.register_hook(lambda grad: grad.mul_(0.5))
        return y


gradsmith_inputs = {"Scaled": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
"""
GOOD = BAD.replace("grad.mul_(0.5)", "grad.mul(0.5)")
_SIMPLE = re.compile(r"\.register_hook\(\s*(?:lambda\b|\w+\s*,?\s*\))")
_MEANT = "Return a new tensor from the hook: PyTorch uses what the hook returns."


def lint_file(file: FileModel) -> Iterator[Finding]:
    hooks = (at for at in file.occurrences(".register_hook(") if _SIMPLE.match(file.text, at))
    # The function around it, not the class: test suites have classes of 10,000 lines.
    around = {file.function_at(file.line_number(at), outermost=True): at for at in hooks}
    for block, at in around.items():
        if block is None:
            continue
        nodes = list(nodes_under(block))
        nested = {n.name: n for n in nodes if isinstance(n, ast.FunctionDef)}
        owner = file.top_at(at)
        for node in nodes:
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and len(node.args) == 1):
                continue
            if node.func.attr != "register_hook":
                continue
            hook = node.args[0]
            if isinstance(hook, ast.Lambda):
                yield from _lambda(file, hook, owner)
            elif isinstance(hook, ast.Name):
                found = nested.get(hook.id) or file.function_named(hook.id)
                if found is not None:
                    yield from _function(file, found, owner)


def _lambda(file: FileModel, hook: ast.Lambda, owner: str | None) -> Iterator[Finding]:
    names = [a.arg for a in hook.args.args]
    if len(names) != 1:
        return
    for node in nodes_under(hook.body):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        if know.is_inplace_name(node.func.attr) and _root(node.func.value) == names[0]:
            yield file.at(
                node,
                f"This hook writes into the gradient '{names[0]}' (`.{node.func.attr}`), which other branches of the graph may "
                "read as well.",
                advice=_MEANT,
                argument=names[0],
                function=owner,
                edits=[_out_of_place(file, node.func)] if node is hook.body else (),
            )


def _root(node: ast.expr) -> str | None:
    """The name behind a chain of views: `g`, `g.view(-1)`, `g[0]`."""
    while not isinstance(node, ast.Name):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in know.VIEWS:
            node = node.func.value
        elif isinstance(node, ast.Subscript) and isinstance(node.slice, (ast.Constant, ast.Slice)):
            node = node.value
        else:
            return None
    return node.id


def _out_of_place(file: FileModel, func: ast.Attribute) -> Edit | None:
    """`mul_` -> `mul`, where there is such an operation."""
    name = func.attr.rstrip("_")
    if name not in know.TENSOR_OPS:
        return None
    place = file.place(func)
    return Edit(place.end_line, place.end_column - len(func.attr), place.end_line, place.end_column, name)


def _function(file: FileModel, node: ast.FunctionDef, owner: str | None) -> Iterator[Finding]:
    method = Method(node.name, node, file, "function", None, read_params(node, 0, "grad_output", file), ())
    if len(method.params) != 1 or method.params[0].kind != "positional":
        return
    for write in method.writes:
        owned = [s for s in method.sources(write.target) if s.owner == "grad_output" and s.certain]
        if owned and not method.in_nested_function(write.node):
            yield file.at(
                write.node,
                f"The hook {node.name} writes into the gradient '{owned[0].name}' (`{write.how}`), which other branches of the "
                "graph may read as well.",
                advice=_MEANT,
                argument=owned[0].name,
                function=owner,
            )
