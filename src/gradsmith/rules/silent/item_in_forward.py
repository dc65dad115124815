"""a module computes with a number that `.item()` took out of the graph

What it finds
-------------
A module whose forward takes `.item()` of something its layers computed, and returns a result that was computed with that number:
`hidden / hidden.abs().max().item()`. Where only inputs of forward were computed with, which may be data, it is a remark.

Why it matters
--------------
Autograd sees the number as a constant. The part of the gradient that flows through it is missing, nothing raises, and the loss still
goes down. `.item()` also waits for the device, and torch.compile and vmap stop at it.

Known problems
--------------
Numbers that only choose (an index, a size, a comparison, a loop bound) are left alone, and so is anything under no_grad or outside of
training. Where the constant is meant, `.detach()` says so and keeps the device.

References
----------
https://docs.pytorch.org/docs/stable/generated/torch.Tensor.item.html
Measured on torch 2.13: for one random layer the example below gives the input [2.34, 1.03, -0.20] where the derivative of what forward
computes is [1.45, 0.60, 0.20].
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradsmith.findings import Finding
from gradsmith.source import Method, torch_ops
from gradsmith.source import knowledge as know
from gradsmith.source.behind import made_of
from gradsmith.source.method import read_params
from gradsmith.source.model import decorator_names
from gradsmith.source.tracked import from_layer, is_module, is_off, operands, parts

if TYPE_CHECKING:
    from gradsmith.source import FileModel

CODE = "GS233"
SEVERITY = "warning"
EXPLAINS = ("wrong-gradient",)
FIXABLE = True
TRIGGERS = (".item()",)
BESIDE = "def forward("
BAD = """
import torch


class Normed(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(3, 3, dtype=torch.float64)

    def forward(self, x):
        hidden = self.linear(x)
        scale = hidden.square().mean().item()
        return hidden / scale


gradsmith_inputs = {"Normed": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
"""
GOOD = BAD.replace(".mean().item()", ".mean()")


def lint_file(file: FileModel) -> Iterator[Finding]:
    places = [at for at in file.occurrences(".item()") if file.stands_in(at, "forward")]
    for block in file.blocks_at(places):
        if not (isinstance(block, ast.ClassDef) and any(is_module(file, base) for base in block.bases)):
            continue
        for node in block.body:
            if isinstance(node, ast.FunctionDef) and node.name == "forward":
                params = read_params(node, 1, "input", file)
                method = Method("forward", node, file, "instance", None, params, decorator_names(node, file))
                yield from _in_forward(file, block, method)


def _in_forward(file: FileModel, owner: ast.ClassDef, method: Method) -> Iterator[Finding]:
    from gradsmith.source.edits import replace

    if method.decorated_with("no_grad", "inference_mode"):
        return
    told: set[ast.AST] = set()
    for found in method.returns:
        for call in _numbers(method, found.node.value):
            tensor = call.func.value if isinstance(call.func, ast.Attribute) else None
            if tensor is None or call in told or not from_layer(method, tensor, through_detach=False, or_input=True):
                continue
            if any(is_off(method, place) for place in (call, found.node)):
                continue
            told.add(call)
            yield file.at(
                call,
                f"{owner.name}.forward computes with '{ast.unparse(call)}', a constant to autograd: the gradient through it is missing.",
                advice="Leave out `.item()`. If the value is meant to be a constant, write `.detach()` instead.",
                function=owner.name,
                severity=None if from_layer(method, tensor, through_detach=False) else "info",
                edits=[replace(file, call, file.source_of(tensor))],
                unsafe="a gradient flows through this value from then on",
            )


def _numbers(method: Method, node: ast.expr | None) -> list[ast.Call]:
    """The calls of `.item()` that a value is computed with, through arithmetic and torch operations only.

    A number that is returned beside others, for the log, is not computed with.
    """

    def into(part: ast.AST) -> list[ast.expr]:
        if not isinstance(part, ast.Call):
            return parts(method, part)
        op = method.op(part)
        return operands(part) if op in torch_ops.POINTWISE and op not in know.TO_NUMBER else []

    def beside(part: ast.AST) -> list[ast.expr]:
        return parts(method, part) if isinstance(part, (ast.Tuple, ast.Name)) else []

    def is_number(part: ast.AST) -> bool:
        return isinstance(part, ast.Call) and method.op(part) in know.TO_NUMBER

    returned = [part for part in made_of(method, [node], beside) if not isinstance(part, (ast.Tuple, ast.Name))]
    made = made_of(method, [part for part in returned if not is_number(part)], into)
    return [n for n in made if isinstance(n, ast.Call) and is_number(n)]
