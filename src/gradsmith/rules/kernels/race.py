"""Programs of one launch depend on the order in which they run.

What it finds
-------------
Two programs of one launch touch the same element, at least one of them stores, and not both use atomics; or two lanes of one
store hit the same element with different values.

In the source: a pointer that is loaded, changed and stored again, where neither it, nor the mask, nor a condition around the store
depends on every axis of the grid. What is only chosen by the loaded numbers, and not made of them, is left alone.

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
from gradsmith.source.kernels import called, kernels
from gradsmith.source.walk import children

if TYPE_CHECKING:
    from gradsmith.lab import Lab
    from gradsmith.source import FileModel
    from gradsmith.source.kernels import Kernel

CODE = "GSK03"
SEVERITY = "error"
TRIGGERS = ("@triton.jit", "@jit")
BESIDE = "@"
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
            again = any(_builds_on(kernel, store.value, a.node, set()) for a in same)
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


def _builds_on(kernel: Kernel, node: ast.AST, load: ast.Call, seen: set[ast.AST]) -> bool:
    """Whether numbers of the load are in a value. What they only decide (`tl.where(x > 0, 1, 0)`) adds up with nothing."""
    if node is load or node in seen or isinstance(node, ast.Compare):
        return node is load
    seen.add(node)
    parts: list[ast.AST] = [*kernel.values(node)] if isinstance(node, ast.Name) else children(node)
    if isinstance(node, ast.Call) and called(node) == "where":
        parts = [*node.args[1:], *(k.value for k in node.keywords if k.arg != "condition")]
    return any(_builds_on(kernel, part, load, seen) for part in parts)


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
