"""a tensor is saved for backward, and backward never uses it

What it finds
-------------
An argument of `save_for_backward` whose place among `ctx.saved_tensors` is unpacked into a name that backward never
reads; or saved tensors when backward does not look at `ctx.saved_tensors` at all.

Why it matters
--------------
What is saved stays in memory from forward to backward, for every call in the graph. An activation that nobody reads can
be the largest tensor of a layer. Offloading and checkpointing hooks copy it as well.

Known problems
--------------
Reported only where saves and unpacks are spelled out, one each, and ctx goes to no other function.

References
----------
https://docs.pytorch.org/docs/stable/autograd.html#torch.autograd.function.FunctionCtx.save_for_backward
Measured on torch 2.13: an unread saved tensor of 64 MB stays allocated until backward has run, and `save_on_cpu` copies it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradsmith.findings import Edit, Finding

if TYPE_CHECKING:
    from gradsmith.source import FunctionModel
    from gradsmith.source.context import Save, Unpack

CODE = "GS402"
SEVERITY = "info"
EXPLAINS = ()
FIXABLE = True
BAD = """
import torch


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = x * x * x
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx, grad_output):
        x, y = ctx.saved_tensors
        return grad_output * 3 * x * x


gradsmith_inputs = {"Cube": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
"""
GOOD = """
import torch


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = x * x * x
        ctx.save_for_backward(x)
        return y

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * 3 * x * x


gradsmith_inputs = {"Cube": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
"""


def lint(function: FunctionModel) -> Iterator[Finding]:
    backward, saves, unpacks = function.backward, function.saves, function.unpacks
    if backward is None or backward.inherited or not function.has_gradient or function.ctx_escapes or len(saves) != 1:
        return
    save = saves[0]
    if save.starred or save.method.inherited or function.jvp is not None or not save.exprs:
        return
    if not unpacks:
        if not any(read.attr in ("saved_tensors", "to_save") for read in function.ctx_reads):
            unread = [i for i in range(len(save.exprs)) if not _is_none(save.exprs[i])]
            yield from [_finding(function, save, unread, [])] if unread else []
        return
    if len(unpacks) != 1 or not unpacks[0].exact or unpacks[0].targets is None:
        return
    targets = unpacks[0].targets
    if len(targets) != len(save.exprs) or None in targets:
        return
    unread = [i for i, target in enumerate(targets) if target is not None and not _is_read(function, target)]
    unread = [i for i in unread if not _is_none(save.exprs[i])]
    if unread:
        yield _finding(function, save, unread, _edits(function, save, unpacks[0], unread))


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _is_read(function: FunctionModel, target: ast.Name) -> bool:
    backward = function.backward
    nodes = backward.nodes if backward else []
    if any(isinstance(n, ast.Call) and isinstance(n.func, ast.Name) and n.func.id in ("locals", "eval") for n in nodes):
        return True
    return any(isinstance(n, ast.Name) and n.id == target.id and not isinstance(n.ctx, ast.Store) for n in nodes)


def _finding(function: FunctionModel, save: Save, unread: list[int], edits: list[Edit | None]) -> Finding:
    names = ", ".join(f"'{ast.unparse(save.exprs[i])}'" for i in unread)
    return function.at(
        save.exprs[unread[0]],
        f"{function.name}.{save.method.name} saves {names} for a backward that never reads {'it' if len(unread) == 1 else 'them'}: "
        "the memory stays until backward has run.",
        advice=f"Remove {names} from save_for_backward and from the unpacking of ctx.saved_tensors.",
        argument=ast.unparse(save.exprs[unread[0]]),
        edits=edits,
        unsafe="other code that reads ctx.saved_tensors finds fewer tensors",
    )


def _edits(function: FunctionModel, save: Save, unpack: Unpack, unread: list[int]) -> list[Edit | None]:
    """Both lists without the unread names; whole statements where nothing is left."""
    from gradsmith.source.edits import delete_lines, replace

    saving, backward = save.method.statement(save.node), function.backward
    taking = unpack.method.statement(unpack.node)
    if backward is None or backward.file is not save.method.file or not isinstance(taking, ast.Assign):
        return []
    if len(taking.targets) != 1 or not isinstance(saving, ast.Expr):
        return []
    file = backward.file
    kept = [i for i in range(len(save.exprs)) if i not in unread]
    if not kept:
        return [delete_lines(file, saving), delete_lines(file, taking)]
    saved = ", ".join(file.source_of(save.exprs[i]) for i in kept)
    names = [t.id for i, t in enumerate(unpack.targets or []) if t is not None and i in kept]
    taken = f"({names[0]},)" if len(names) == 1 else ", ".join(names)
    call = f"{file.source_of(save.node.func)}({saved})"
    return [replace(file, save.node, call), replace(file, taking.targets[0], taken)]
