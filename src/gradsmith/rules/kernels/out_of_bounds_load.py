"""A kernel loads from outside a tensor.

What it finds
-------------
Every tensor that is passed to a launch lies between guard zones, and each load is compared with the tensor its pointer was made
from. The kernel runs as written, under Triton's interpreter.

Why it matters
--------------
On a GPU such a load returns whatever lies there, or ends the process with an illegal memory access, depending on the allocator.

Known problems
--------------
Bounds are those of the storage: a view that leaves its own part of a larger tensor is not seen.

References
----------
https://triton-lang.org/main/python-api/generated/triton.language.load.html
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradsmith.findings import Finding
from gradsmith.rules.kernels import SQUARE, SYMPTOMS, told

if TYPE_CHECKING:
    from gradsmith.lab import Lab

CODE = "GSK01"
SEVERITY = "error"
EXPLAINS = SYMPTOMS
BAD = SQUARE.replace("g = tl.load(g_ptr + i, mask=mask, other=0.0)", "g = tl.load(g_ptr + i)")
GOOD = SQUARE


def probe(lab: Lab) -> Iterator[Finding]:
    yield from told(
        lab,
        ("load",),
        "loads from outside",
        "Pass `mask=` to the load: true only for offsets that are inside this tensor.",
    )
