"""Lanes that a mask leaves undefined reach a result.

What it finds
-------------
A load with a mask and without `other` leaves its masked lanes undefined. They are filled with arbitrary numbers, and forward and
backward run again: where a result changes, they are used.

In the source: such a load whose value reaches a reduction or a product of matrices without a `tl.where` on the way, where the mask
differs along the axis that is reduced. A row that is not loaded spoils only its own row, which the store leaves out.

Why it matters
--------------
Most GPUs return zeros there most of the time. A maximum, a product or a mean over them is wrong on some inputs, and any sum on
some machines.

Known problems
--------------
Lanes that are multiplied by zero afterwards are not reported.

References
----------
https://triton-lang.org/main/python-api/generated/triton.language.load.html
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from gradsmith.findings import Edit, Finding
from gradsmith.rules.kernels import SYMPTOMS, TOTAL
from gradsmith.source.kernels import kernels
from gradsmith.source.lanes import reduction_reached

if TYPE_CHECKING:
    from gradsmith.lab import Lab
    from gradsmith.source import FileModel
    from gradsmith.source.kernels import Access

CODE = "GSK05"
SEVERITY = "error"
TRIGGERS = ("@triton.jit", "@jit")
BESIDE = "@"
EXPLAINS = SYMPTOMS
FIXABLE = True
BAD = TOTAL.replace("mask=i < n, other=0.0", "mask=i < n")
GOOD = TOTAL
_ADVICE = (
    "Pass `other=` with a value that leaves the result as it is: 0 for a sum, 1 for a product, -inf for a maximum."
)


def lint_file(file: FileModel) -> Iterator[Finding]:
    for kernel in kernels(file):
        loads = [a for a in kernel.accesses if a.kind == "load" and a.mask is not None and a.other is None]
        reached = [(load, reduction) for load in loads if (reduction := reduction_reached(kernel, load))]
        if reached:
            load, reduction = reached[0]
            lines = ", ".join(str(other.node.lineno) for other, _ in reached[1:])
            more = f" So do those of {'line' if len(reached) == 2 else 'lines'} {lines}." if lines else ""
            yield file.at(
                load.node,
                f"In the kernel '{kernel.node.name}' this load has a mask and no other=. Its masked elements are undefined, and tl.{reduction} uses them.{more}",
                advice=_advice(reduction),
                function=kernel.node.name,
                severity="warning",
                edits=[_defined(file, load.node) for load, found in reached] if _only_sums(reached) else [],
                unsafe="masked elements count as 0 from then on",
            )


# What changes nothing, by the reduction.
_NEUTRAL = {
    "sum": "0.0",
    "xor_sum": "0",
    "max": 'float("-inf")',
    "min": 'float("inf")',
    "argmax": 'float("-inf")',
    "argmin": 'float("inf")',
}


def _advice(reduction: str) -> str:
    neutral = _NEUTRAL.get(reduction)
    if neutral is None:
        return _ADVICE
    return f"Pass `other={neutral}`: tl.{reduction} gives the same with it, unless something is computed from this load first."


def _only_sums(reached: list[tuple[Access, str]]) -> bool:
    """Whether 0 changes nothing, as far as the reduction goes: what is computed before it may make another number of it."""
    return all(reduction in ("sum", "dot") for _, reduction in reached)


def _defined(file: FileModel, load: ast.Call) -> Edit:
    place = file.place(load)
    text = file.source_of(load)
    comma = "" if text[:-1].rstrip().endswith(",") else ", "
    return Edit(place.end_line, place.end_column - 1, place.end_line, place.end_column - 1, f"{comma}other=0.0")


def probe(lab: Lab) -> Iterator[Finding]:
    from gradsmith.lab.triton.witness import undefined_lanes
    from gradsmith.source.loaded import line_of

    for path, line, kernel, argument in undefined_lanes(lab):
        text = line_of(path, line)
        yield replace(
            lab.finding(
                f"The kernel '{kernel}', launched by {lab.target.name}, uses the masked elements of this load of {argument}. They are "
                "undefined, and they change a result.",
                advice=_ADVICE,
                evidence={"kernel": kernel, "pointer": argument},
            ),
            path=path,
            line=line,
            column=len(text) - len(text.lstrip()),
            snippet=text.rstrip("\n"),
        )
