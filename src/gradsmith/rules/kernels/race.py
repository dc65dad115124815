"""Programs of one launch depend on the order in which they run.

What it finds
-------------
Two programs of one launch touch the same element, at least one of them stores, and not both use atomics; or two lanes of one
store hit the same element with different values.

In the source: a pointer that is loaded, changed and stored again, where neither it, nor the mask, nor a condition around the store
depends on every axis of the grid.

Why it matters
--------------
Programs run in any order, and at the same time: an element that two of them store keeps one of the values, and sums lose terms.

Known problems
--------------
A launch that uses a lock or a flag (atomic_cas, atomic_xchg) is left alone. Two programs that store the same value are a remark.

References
----------
https://triton-lang.org/main/python-api/generated/triton.language.atomic_add.html
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradsmith.findings import Finding
from gradsmith.rules.kernels import SYMPTOMS, TOTAL, told
from gradsmith.source.kernels import kernels
from gradsmith.source.walk import nodes_under

if TYPE_CHECKING:
    from gradsmith.lab import Lab
    from gradsmith.source import FileModel

CODE = "GSK03"
SEVERITY = "error"
TRIGGERS = ("triton.jit", "@jit")
BESIDE = "triton"
EXPLAINS = SYMPTOMS
BAD = TOTAL.replace("tl.atomic_add(y_ptr, tl.sum(x, 0))", "tl.store(y_ptr, tl.load(y_ptr) + tl.sum(x, 0))")
GOOD = TOTAL
_ATOMICS = "Use tl.atomic_add; or let each program store its part into an element of its own, and sum the parts after the launch."


def lint_file(file: FileModel) -> Iterator[Finding]:
    for kernel in kernels(file):
        if kernel.has_lock:
            continue
        loads = [a for a in kernel.accesses if a.kind == "load" and a.pointer is not None]
        for store in kernel.accesses:
            if store.kind != "store" or store.pointer is None or store.value is None:
                continue
            same = [a for a in loads if a.pointer is not None and ast.dump(a.pointer) == ast.dump(store.pointer)]
            if not same or kernel.base(store.pointer) is None:
                continue
            values = [store.value, *(v for n in kernel.names_behind(store.value) for v in kernel.assigned.get(n, ()))]
            again = any(a.node is node for a in same for value in values for node in nodes_under(value))
            tests = kernel.conditions(store.node) if again else []
            owned = {axis for part in (store.pointer, store.mask, *tests) for axis in kernel.axes(part)}
            unowned = kernel.all_axes - owned
            # The last program to arrive at a counter is alone.
            elected = any(kernel.leads_to(test, "atomic_add") for test in tests)
            if again and unowned and not elected:
                yield file.at(
                    store.node,
                    f"Every program of the kernel '{kernel.node.name}' along axis {', '.join(sorted(unowned))} of the grid loads the value at "
                    f"`{ast.unparse(store.pointer)}`, changes it and stores it, without an atomic: changes by other programs get lost.",
                    advice=_ATOMICS,
                    function=kernel.node.name,
                    severity="warning",
                )


def probe(lab: Lab) -> Iterator[Finding]:
    yield from told(lab, ("order",), "has a race between programs for", _ATOMICS)
    yield from told(
        lab,
        ("lanes",),
        "stores twice into one element of",
        "Give every lane an element of its own, or mask the others off.",
    )
    yield from told(
        lab, ("same value",), "stores the same value from two programs into", "Let one of them store it.", "info"
    )
