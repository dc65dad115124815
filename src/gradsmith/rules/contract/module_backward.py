"""an nn.Module with a backward of its own, which nobody calls

What it finds
-------------
A `backward(self, grad_output)` beside forward in a class that derives from `nn.Module`, returning something, in a file
where nobody calls a backward with a gradient by hand.

Why it matters
--------------
PyTorch calls the backward of an `autograd.Function`, never that of a module: autograd differentiates what forward does, and
what is written in backward has no effect. A gradient reversal layer written like this reverses nothing, without an error.

Known problems
--------------
A backward that is called by hand from another file is reported, too. Methods that take a loss
(`backward(self, loss)`, as training frameworks have them) are left alone.

References
----------
https://github.com/hash2430/pitchtron/issues/3, https://github.com/wangzhuo2019/SSAN/issues/18,
https://github.com/KrisKorrel/sparsemax-pytorch/issues/5
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradsmith.findings import Finding
from gradsmith.source.lexicon import is_a
from gradsmith.source.walk import nodes_under

if TYPE_CHECKING:
    from gradsmith.source import FileModel

CODE = "GS122"
SEVERITY = "warning"
TRIGGERS = ("def backward(self",)
BAD = """
import torch


class Reversed(torch.nn.Module):
    def forward(self, x):
        return x

    def backward(self, grad_output):
        return -grad_output


gradsmith_inputs = {"Reversed": lambda: (Reversed(), torch.randn(4, 3, dtype=torch.float64, requires_grad=True))}
"""
GOOD = """
import torch


class Reverse(torch.autograd.Function):  # gradsmith: surrogate[reversal]
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad_output):
        return -grad_output


gradsmith_inputs = {"Reverse": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
"""
# What a gradient that comes from above is called; a loss, a closure or an optimizer is something else.
# `layer.backward(dout)`, `super().backward(grad)`: somebody does it by hand. `loss.backward(retain_graph=True)` is autograd's.
_BY_HAND = re.compile(r"\.backward\((?!\s*(?:\)|retain_graph|gradient\s*=|inputs\s*=|create_graph))")


def lint_file(file: FileModel) -> Iterator[Finding]:
    if _BY_HAND.search(file.text):
        return
    for block in file.blocks_with("def backward(self", containing="def forward("):
        for owner in nodes_under(block):
            if isinstance(owner, ast.ClassDef) and any(file.dotted(base) == "torch.nn.Module" for base in owner.bases):
                yield from _judged(file, owner)


def _judged(file: FileModel, owner: ast.ClassDef) -> Iterator[Finding]:
    methods = {n.name: n for n in owner.body if isinstance(n, ast.FunctionDef)}
    backward = methods.get("backward")
    if backward is None or "forward" not in methods:
        return
    given = [a.arg for a in (*backward.args.posonlyargs, *backward.args.args)][1:]
    returned = [n for n in nodes_under(backward) if isinstance(n, ast.Return) and n.value is not None]
    if not given or not is_a(given[0], "gradient") or not returned:
        return
    yield file.at(
        backward,
        f"{owner.name} is an nn.Module, whose backward PyTorch never calls: autograd differentiates {owner.name}.forward by itself, "
        "and this method has no effect.",
        advice=f"Write a class of its own, derived from torch.autograd.Function, with the static methods `forward(ctx, ...)` and "
        f"`backward(ctx, grad_output)`, and call its `.apply(...)` in {owner.name}.forward. `gradsmith explain module-backward` shows one.",
        function=owner.name,
    )
