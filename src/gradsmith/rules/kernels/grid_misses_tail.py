"""The grid is too short: the end of a result is never stored.

What it finds
-------------
After forward and backward, the end of an output or a gradient still holds the uninitialised memory it was allocated with, although
a kernel stored everything before it: the last elements, or the end along one dimension. Where results are spoilt and have no such
end, the tensors between two steps are looked at.

In the source: a grid that is computed with floor division of a size by a block, although the kernel masks its offsets with that size
(`offsets < n`): it expects a block that is only begun. Left alone where the same function raises unless the block divides the size
(`assert n % BLOCK == 0`), and where the size was rounded up before.

Why it matters
--------------
With a size that is a multiple of the block everything is stored; with any other the end is garbage.

Known problems
--------------
A tensor that was allocated with zeros has a wrong gradient instead.

References
----------
https://triton-lang.org/main/python-api/generated/triton.cdiv.html
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from gradsmith.findings import Edit, Finding
from gradsmith.rules.kernels import SQUARE, SYMPTOMS
from gradsmith.source.edits import replace as replace_node
from gradsmith.source.kernels import kernels, launches

if TYPE_CHECKING:
    from gradsmith.lab import Lab
    from gradsmith.source import FileModel

CODE = "GSK06"
SEVERITY = "error"
TRIGGERS = ("@triton.jit", "@jit")
BESIDE = "@"
EXPLAINS = SYMPTOMS
FIXABLE = True
BAD = SQUARE.replace("triton.cdiv(x.numel(), 16)", "x.numel() // 16")
GOOD = SQUARE


def lint_file(file: FileModel) -> Iterator[Finding]:
    known = {kernel.node.name: kernel for kernel in kernels(file)}
    for launch in launches(file) if known else ():
        for division in launch.floored(known[launch.kernel]) if launch.kernel in known else ():
            yield file.at(
                division,
                f"The grid of the kernel '{launch.kernel}' is rounded down: if the size is not a multiple of the block, the last elements are "
                "never computed.",
                advice=f"Write triton.cdiv({ast.unparse(division.left)}, {ast.unparse(division.right)}), and mask loads and stores.",
                function=launch.kernel,
                severity="warning",
                edits=[_rounded_up(file, division)],
            )


def _rounded_up(file: FileModel, division: ast.BinOp) -> Edit | None:
    if file.imports.names.get("triton") != "triton":
        return None
    size, block = file.source_of(division.left), file.source_of(division.right)
    return replace_node(file, division, f"triton.cdiv({size}, {block})")


def probe(lab: Lab) -> Iterator[Finding]:
    from gradsmith.lab.triton.witness import interprets, witness
    from gradsmith.source.loaded import line_of

    for missed in witness(lab).tails if interprets(lab) else ():
        store = missed.store
        text = line_of(store.path, store.line)
        yield replace(
            lab.finding(
                f"{store.kernel}, launched by {lab.target.name}: {missed.words}",
                advice="Launch one program for every block that is begun: triton.cdiv(n, BLOCK).",
                evidence={"kernel": store.kernel, "pointer": store.argument},
            ),
            path=store.path,
            line=store.line,
            column=len(text) - len(text.lstrip()),
            snippet=text.rstrip("\n"),
        )
