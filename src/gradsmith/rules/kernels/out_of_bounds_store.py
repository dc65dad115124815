"""A kernel stores outside a tensor.

What it finds
-------------
Every tensor that is passed to a launch lies between guard zones, and each store and atomic is compared with the tensor its pointer
was made from. The kernel runs as written, under Triton's interpreter.

In the source: a store without a mask at the very offsets at which a load of the same kernel has one.

Why it matters
--------------
On a GPU such a store overwrites another tensor, silently: gradients of a neighbouring layer change from run to run.

Known problems
--------------
Bounds are those of the storage: a view that leaves its own part of a larger tensor is not seen.

References
----------
https://triton-lang.org/main/python-api/generated/triton.language.store.html
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradsmith.findings import Edit, Finding
from gradsmith.rules.kernels import SQUARE, SYMPTOMS, told
from gradsmith.source.kernels import Access, Kernel, kernels

if TYPE_CHECKING:
    from gradsmith.lab import Lab
    from gradsmith.source import FileModel

CODE = "GSK02"
SEVERITY = "error"
TRIGGERS = ("@triton.jit", "@jit")
BESIDE = "@"
EXPLAINS = SYMPTOMS
FIXABLE = True
BAD = SQUARE.replace("tl.store(d_ptr + i, 2 * x * g, mask=mask)", "tl.store(d_ptr + i, 2 * x * g)")
GOOD = SQUARE


def lint_file(file: FileModel) -> Iterator[Finding]:
    for kernel in kernels(file):
        masked = [a for a in kernel.accesses if a.kind == "load" and kernel.leaves_out(a.mask)]
        for store in kernel.accesses:
            if store.kind != "store" or store.mask is not None:
                continue
            if shared := _guarded(kernel, store, masked):
                yield file.at(
                    store.node,
                    f"In the kernel '{kernel.node.name}' this store has no mask; loads at the same offsets ({', '.join(sorted(shared))}) have one.",
                    advice="Give the store the mask of the load.",
                    function=kernel.node.name,
                    severity="warning",
                    edits=[_masked(file, kernel, store, masked)],
                )


def _masked(file: FileModel, kernel: Kernel, store: Access, masked: list[Access]) -> Edit | None:
    """The mask of the load, where it is a name that still means the same."""
    alike = [a for a in masked if kernel.offsets(a.pointer) == kernel.offsets(store.pointer)]
    names = {a.mask.id: a.mask for a in alike if isinstance(a.mask, ast.Name)}
    if len(names) != 1 or len(kernel.assigned.get(next(iter(names)), ())) != 1 or len(store.node.args) != 2:
        return None
    place = file.place(store.node)
    text = file.source_of(store.node)
    comma = "" if text[:-1].rstrip().endswith(",") else ", "
    return Edit(
        place.end_line, place.end_column - 1, place.end_line, place.end_column - 1, f"{comma}mask={next(iter(names))}"
    )


def _guarded(kernel: Kernel, store: Access, masked: list[Access]) -> set[str]:
    """The ranges in the store's offset that the mask of a load at the same offset is about.

    The same range in another offset says nothing: what is stored per block has room for all of the block.
    """
    offset = kernel.offsets(store.pointer)
    if not offset or not kernel.axes(store.pointer):
        return set()  # what every program stores at the same place has room for a whole block
    alike = [a for a in masked if kernel.offsets(a.pointer) == offset and _have_same_values(kernel, a, store)]
    # `if EVEN:` without a mask, `else:` with one: the flag says that there is nothing to leave out.
    same = [a.mask for a in alike if a.mask is not None and not kernel.excludes(a.node, store.node)]
    bounded = {name for mask in same for name in kernel.names_behind(mask)}
    return kernel.leads_to(store.pointer, "arange") & bounded


def _have_same_values(kernel: Kernel, load: Access, store: Access) -> bool:
    """`offsets` of the tail is not `offsets` of the whole tiles, which a second loop binds again."""
    ours, theirs = ({n.id: set(kernel.flow.at.get(n, ())) for n in kernel.names_in(a.pointer)} for a in (load, store))
    return all(ours[name] == theirs[name] for name in ours.keys() & theirs.keys())


def probe(lab: Lab) -> Iterator[Finding]:
    yield from told(lab, ("store",), "stores outside", "Mask the store with the length of this tensor.")
