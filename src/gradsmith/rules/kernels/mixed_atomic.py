"""One program uses an atomic, another a plain access, on the same element.

What it finds
-------------
Within one launch an element is changed by an atomic in one program, and loaded or stored without one in another.

Why it matters
--------------
An atomic only protects against other atomics: a plain store beside it overwrites what was added.

Known problems
--------------
A launch that uses a lock or a flag (atomic_cas, atomic_xchg) is left alone.

References
----------
https://triton-lang.org/main/python-api/generated/triton.language.atomic_add.html
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradsmith.findings import Finding
from gradsmith.rules.kernels import SYMPTOMS, TOTAL, told

if TYPE_CHECKING:
    from gradsmith.lab import Lab

CODE = "GSK04"
SEVERITY = "error"
EXPLAINS = SYMPTOMS
_FIRST_STORES = """    if tl.program_id(0) == 0:
        tl.store(y_ptr, tl.sum(x, 0))
    else:
        tl.atomic_add(y_ptr, tl.sum(x, 0))
"""
BAD = TOTAL.replace("    tl.atomic_add(y_ptr, tl.sum(x, 0))\n", _FIRST_STORES)
GOOD = TOTAL


def probe(lab: Lab) -> Iterator[Finding]:
    advice = (
        "Write to these elements only by tl.atomic_add in this kernel, do not load them in it, and fill the tensor with zeros before "
        "the launch. As it is, the result depends on which program runs first."
    )
    yield from told(lab, ("mixed",), "mixes atomic and plain accesses to", advice)
