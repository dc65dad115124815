"""Stage 2c, for C only: products that were moved out of the loops and are better off inside them, a few steps at a time.

A product of x alone was hoisted, and one that only gives d_x deferred, because a BLAS is slow on few rows. Ours is not,
if it may take several time steps at once. Inside the loop its result is read while it is still in the cache, no time
course of it is written, and every thread works on its own rows without waiting. Large weights stay outside: those of two
products would take turns in the second cache.
"""

from __future__ import annotations

import torch
from torch import fx

from .nodes import args_of, dtype_of, shape_of
from .rows import Layout, layout_of
from .split import MATRIX_PRODUCTS, Split

_LARGEST_WEIGHT = 1 << 18  # bytes: a quarter of the second cache of today's processors


def weave_products(parts: Split) -> None:
    """Move such products into the loops of `parts`; what is saved must have been decided."""
    order = {node: i for i, node in enumerate(parts.joint.graph.nodes)}
    later = {*parts.saved, *parts.backward, *parts.recomputed, *parts.after, *parts.sums, *parts.hoisted}
    ends = {*parts.joint.y, *parts.joint.new_state, *parts.saved}
    woven = [n for n in parts.hoisted if _small_product(n, parts) and n not in ends and not later & set(n.users)]
    woven = [n for n in woven if args_of(n)[0] in parts.joint.x]
    parts.hoisted = [n for n in parts.hoisted if n not in woven]
    parts.forward = sorted([*parts.forward, *woven], key=order.__getitem__)
    exported = set(parts.exports)
    d_x = {n for n in parts.joint.d_x if n is not None}
    back = [n for n in parts.after if n in d_x and _small_product(n, parts) and args_of(n)[0] in exported]
    back = [n for n in back if not any(user in order and user.op != "output" for user in n.users)]
    parts.after = [n for n in parts.after if n not in back]
    parts.backward = sorted([*parts.backward, *back], key=order.__getitem__)
    parts.exports = sorted([*parts.exports, *back], key=order.__getitem__)


def _small_product(node: fx.Node, parts: Split) -> bool:
    if node.target not in MATRIX_PRODUCTS:
        return False
    a, weight = args_of(node)
    timeless = weight in parts.joint.params or weight in parts.once
    flat = timeless and layout_of(weight, parts.joint.rows) is Layout.FLAT
    kinds = (torch.float32, torch.float64)
    if not flat or dtype_of(a) not in kinds or dtype_of(a) is not dtype_of(weight):
        return False
    return torch.Size(shape_of(weight)).numel() * dtype_of(weight).itemsize <= _LARGEST_WEIGHT
