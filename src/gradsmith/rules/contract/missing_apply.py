"""the Function is called without apply

What it finds
-------------
In the file of a Function: `Fn()(x)`, an instance that is stored and then called, `Fn(x)` where the class takes no arguments,
and `Fn.forward(None, x)` outside of Functions and of code that runs without gradients.

Why it matters
--------------
Calling an instance raises "Legacy autograd function with non-static forward method is deprecated". `Fn(x)` only makes an object,
which is not a tensor. `Fn.forward(None, x)` works, and is differentiated by autograd as if backward had never been written.

Known problems
--------------
Only the file that defines the Function is searched.

References
----------
https://docs.pytorch.org/docs/stable/notes/extending.html
Measured on torch 2.13: Fn()(x) raises; Fn.forward(None, x) gives the derivative of forward, not what backward returns.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradsmith.findings import Finding
from gradsmith.source.edits import replace
from gradsmith.source.lexicon import is_a
from gradsmith.source.walk import nodes_under

if TYPE_CHECKING:
    from gradsmith.source import FunctionModel

CODE = "GS110"
SEVERITY = "error"
EXPLAINS = ("backward-raised", "forward-raised")  # made for `Fn(options)(x)`, it misses what its __init__ kept
FIXABLE = True
BAD = """
import torch


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * 2 * x


def square(x):
    return Square()(x)


gradsmith_inputs = {"Square": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
"""
GOOD = BAD.replace("Square()(x)", "Square.apply(x)")


def lint(function: FunctionModel) -> Iterator[Finding]:
    if function.kind != "function":
        return
    name, text = function.name, function.file.text
    if text.count(f"{name}(") - text.count(f"class {name}(") + text.count(f"{name}.forward(") <= 0:
        return
    if "." in function.qualname:
        return
    pattern = rf"(?<![\w.])(?<!class ){name}(?:\(|\.forward\()"
    if len(re.findall(rf"(?:class[ \t]+{name}\b|^{name}[ \t]*=)", function.file.text, re.M)) != 1:
        return
    blocks = [b for b in function.file.blocks_matching(pattern) if not _is_function_class(function, b)]
    kept: set[str] = set()
    for block in blocks:
        made = _instances(function, block)
        kept |= made if isinstance(block, ast.Assign) else set()
        for node in nodes_under(block):
            if isinstance(node, ast.Call):
                yield from _judged(function, block, node, made)
    for name in sorted(kept):
        yield from _called_elsewhere(function, name, blocks)


def _called_elsewhere(function: FunctionModel, name: str, done: list[ast.stmt]) -> Iterator[Finding]:
    """`op = Op()` at the top of a file, and `op(x)` further down."""
    for block in function.file.blocks_matching(rf"(?<![\w.]){re.escape(name)}\("):
        if block in done or len(re.findall(rf"^{re.escape(name)}[ \t]*=", function.file.text, re.M)) != 1:
            continue
        inside = nodes_under(block)
        bound = {n.id for n in inside if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        bound |= {n.arg for n in inside if isinstance(n, ast.arg)}
        for node in inside if name not in bound else ():
            if isinstance(node, ast.Call):
                yield from _judged(function, block, node, {name})


def _is_function_class(function: FunctionModel, block: ast.stmt) -> bool:
    """Functions may use each other's forward as they like: what happens there is differentiated by their backward."""
    return isinstance(block, ast.ClassDef) and any(f.node.lineno == block.lineno for f in function.file.functions)


def _instances(function: FunctionModel, block: ast.stmt) -> set[str]:
    """Names that are assigned `Fn(...)` and nothing else in this block but instances of other Functions."""
    siblings = {f.name for f in function.file.functions if f.kind == "function"}
    found: dict[str, list[str]] = {}
    for node in nodes_under(block):
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            called = node.value.func if isinstance(node.value, ast.Call) else None
            found.setdefault(ast.unparse(node.targets[0]), []).append(called.id if isinstance(called, ast.Name) else "")
    # One mistake is said once: by the Function that is assigned first.
    return {target for target, calls in found.items() if calls[0] == function.name and siblings.issuperset(calls)}


def _is_name(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _judged(function: FunctionModel, block: ast.stmt, node: ast.Call, made: set[str]) -> Iterator[Finding]:
    name, func = function.name, node.func
    parent = function.file.parents.get(node)
    advice = f"Write `{name}.apply(...)`."
    if isinstance(func, ast.Call) and _is_name(func.func, name):
        edits = [replace(function.file, func, f"{name}.apply")]
        message = f"`{ast.unparse(func)}(...)` calls an instance of {name}, which PyTorch refuses: Functions are called by apply."
        yield function.at(node, message, advice=advice, edits=edits)
    elif isinstance(func, (ast.Name, ast.Attribute)) and ast.unparse(func) in made:
        shown = ast.unparse(func)
        message = f"`{shown}` is an instance of {name}, and PyTorch refuses to call it: Functions are called by apply."
        yield function.at(node, message, advice=f"Write `{shown} = {name}.apply` where it is made.")
    elif _is_name(func, name) and node.args and _takes_no_arguments(function):
        if isinstance(parent, ast.Call) and parent.func is node:
            return
        edits = [replace(function.file, func, f"{name}.apply")]
        message = (
            f"`{name}(...)` only makes an object of the class and computes nothing: Functions are called by apply."
        )
        yield function.at(node, message, advice=advice, edits=edits)
    elif isinstance(func, ast.Attribute) and func.attr == "forward" and _is_name(func.value, name) and node.args:
        first = node.args[0]
        literal = isinstance(first, ast.Constant) and first.value is None
        written = ast.unparse(block)
        if not literal or _needs_no_gradient(block) or "test" in function.file.path.lower():
            return
        if isinstance(block, (ast.FunctionDef, ast.AsyncFunctionDef)) and f"{name}.apply(" in written:
            return  # the caller chooses between the two
        message = (
            f"`{name}.forward(None, ...)` bypasses {name}.backward: autograd differentiates what forward does instead."
        )
        # Who calls apply elsewhere knows it, and leaves it out where nothing is differentiated.
        files = function.file.project.files if function.file.project is not None else [function.file]
        known = any(f"{name}.apply" in f.text for f in files)
        yield function.at(node, message, advice=advice, severity="info" if known else "warning")


def _takes_no_arguments(function: FunctionModel) -> bool:
    bases = [function.file.dotted(b) or "" for b in getattr(function.node, "bases", ())]
    own = any(isinstance(s, ast.FunctionDef) and s.name in ("__init__", "__new__") for s in function.node.body)
    return not own and all(b.endswith(("autograd.Function", "function.Function")) for b in bases)


def _needs_no_gradient(block: ast.AST) -> bool:
    """The names around the call speak of inference, tracing or export."""
    names = (
        getattr(node, field, None) for node in (block, *nodes_under(block)) for field in ("id", "attr", "arg", "name")
    )
    return any(is_a(name, "no gradient needed") for name in names if isinstance(name, str))
