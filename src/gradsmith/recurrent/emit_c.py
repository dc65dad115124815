"""Stage 3: a split step becomes one C file with a forward and a backward loop over time."""

from __future__ import annotations

import re
from dataclasses import dataclass

import torch
from torch import fx

from gradsmith.native.c_prelude import CHUNK_ROWS, prelude

from .emit_expr import c_type
from .emit_step import Place, StepWriter
from .nodes import dtype_of, shape_of
from .rows import Layout, elements, layout_of
from .split import Split

_SIZES = {"flag": 1, "whole": 8}
# `shared` has the packed weights; `packed` says that they are there. Without rows, packing them is all there is to do.
_ARGUMENTS = (
    "void **buf, const long *entire, const long *first, long T, long B, long r0, long r1, long thread, long packed, char *work,"
    " char *shared, void *const *api"
)
# Where the rows of step t lie: `now` in what has a place for every step; states have the rows of the first one in front, and the
# state before a step has as many rows as the step before. `here` and `there` take turns. L rows of this thread have not ended.
_ROWS = """\
    const long now = first[t], since = first[t - t % CHUNK], before = t ? B + first[t - 1] : 0, after = B + now;
    const long here = (t & 1) * B, there = B - here, spot = R == B ? now - since : t % CHUNK * R;
    const long left = first[t + 1] - now - r0, L = left < R ? left : R;
    if (L <= 0) continue;
    const int opens = t % CHUNK == 0, closes = t == T - 1 || t % CHUNK == CHUNK - 1 || first[t + 2] - first[t + 1] <= r0;"""
# The functions of native/products.py, compiled once for all plans.
_PRODUCTS = """
#define pack ((void (*)(const real *, real *, long, long))api[0])
#define product ((void (*)(long, long, long, const real *, const real *, real *))api[1])
#define product_over ((void (*)(const long *, long, long, long, long, long, long, long, const real *, const real *, real *, \
  long))api[2])
"""


@dataclass(frozen=True)
class Slot:
    """One buffer a kernel works on: its role and the node, or the position among its kind, that it belongs to."""

    name: str
    role: str  # x | hoist | param | row | state | y | saved | grad_y | carry | export | late | row_sum | sum
    node: fx.Node
    position: int = 0


@dataclass(frozen=True)
class Kernel:
    """An emitted loop: the buffers it expects, how much scratch memory one thread needs for R rows, and all of them together."""

    name: str
    slots: tuple[Slot, ...]
    fixed_bytes: int
    bytes_per_row: int
    shared_bytes: int
    work_per_row: int
    """What one row costs in one step, in units of about 0.27 ns."""

    def work_bytes(self, rows: int) -> int:
        return self.fixed_bytes + self.bytes_per_row * rows


@dataclass(frozen=True)
class Emitted:
    source: str
    forward: Kernel
    backward: Kernel | None


class _Places:
    """Names the buffers of one kernel and remembers what they are."""

    def __init__(self, rows: int) -> None:
        self.rows = rows
        self.slots: list[Slot] = []

    def add(self, role: str, node: fx.Node, slot: str, position: int = 0, adds: bool = False) -> Place:
        name = f"{role}{len(self.slots)}"
        self.slots.append(Slot(name, role, node, position))
        return Place(name, slot.replace("NAME", name), _width(node, self.rows), c_type(dtype_of(node)), adds)


def _width(node: fx.Node, rows: int) -> int:
    flat = layout_of(node, rows) is Layout.FLAT
    return torch.Size(shape_of(node)).numel() if flat else elements(node, rows)


def emit(parts: Split, dtype: torch.dtype) -> Emitted:
    forward_text, forward = _forward(parts, dtype)
    text = prelude(dtype) + _PRODUCTS + forward_text
    backward = None
    if parts.joint.grad_state or parts.joint.grad_y:
        backward_text, backward = _backward(parts, dtype)
        text += backward_text
    return Emitted(text, forward, backward)


def _timeless(parts: Split, places: _Places, given: dict[fx.Node, Place]) -> None:
    for node in [*parts.joint.params, *parts.once]:
        layout = layout_of(node, parts.joint.rows)
        if layout is Layout.CROSSED:
            continue
        if dtype_of(node) not in (torch.float32, torch.float64, torch.bool, torch.int64):
            continue
        flat = layout is Layout.FLAT
        given[node] = places.add("param" if flat else "row", node, "flat" if flat else "row")


def _forward(parts: Split, dtype: torch.dtype) -> tuple[str, Kernel]:
    joint = parts.joint
    places = _Places(joint.rows)
    given: dict[fx.Node, Place] = {
        node: places.add("x", node, "now", i) for i, node in enumerate(joint.x) if _plain(node)
    }
    given |= {node: places.add("hoist", node, "now") for node in parts.hoist_results}
    _timeless(parts, places, given)
    stores: list[tuple[fx.Node, Place]] = []
    for i, (before, after) in enumerate(zip(joint.state, joint.new_state)):
        given[before] = places.add("state", before, "at_NAME", i)
        ahead = given[before]
        stores.append((after, Place(ahead.base, f"next_{ahead.base}", ahead.width, ahead.kind)))
    for j, node in enumerate(joint.y):
        if shared_state(parts, j) is None:
            stores.append((node, places.add("y", node, "now", j)))
    for node in parts.saved:
        if node not in parts.hoisted:
            stores.append((node, places.add("saved", node, "at_NAME")))
    writer = StepWriter(parts.forward, {}, given, stores, joint.rows, backwards=False)
    return _function("gs_forward", writer, places, {}, "for (long t = 0; t < T; t++)", dtype, [])


def shared_state(parts: Split, output: int) -> int | None:
    """The state whose buffer already holds output number `output`, if there is one."""
    joint = parts.joint
    node = joint.y[output]
    if node in joint.y[:output]:
        return None
    return next((i for i, after in enumerate(joint.new_state) if after is node), None)


def _plain(node: fx.Node) -> bool:
    return dtype_of(node) in (torch.float32, torch.float64, torch.bool, torch.int64)


def _backward(parts: Split, dtype: torch.dtype) -> tuple[str, Kernel]:
    joint = parts.joint
    places = _Places(joint.rows)
    given: dict[fx.Node, Place] = {
        node: places.add("x", node, "now", i) for i, node in enumerate(joint.x) if _plain(node)
    }
    _timeless(parts, places, given)
    for j, node in enumerate(joint.y):
        if shared_state(parts, j) is None and node in parts.readable:
            given[node] = places.add("y", node, "now", j)
    for i, (before, after) in enumerate(zip(joint.state, joint.new_state)):
        if before in parts.readable:
            given[before] = places.add("state", before, "before", i)
            given.setdefault(after, Place(given[before].base, "after", given[before].width, given[before].kind))
    given |= {node: places.add("saved", node, "now") for node in parts.saved}
    given |= {node: places.add("grad_y", node, "now", j) for j, node in enumerate(joint.grad_y) if _plain(node)}
    stores: list[tuple[fx.Node, Place]] = []
    cleared: list[Place] = []
    for i, (node, result) in enumerate(zip(joint.grad_state, joint.d_state)):
        if not dtype_of(node).is_floating_point:
            continue
        given[node] = places.add("carry", node, "here", i)
        target = Place(given[node].base, "there", given[node].width, given[node].kind)
        if result is None:
            cleared.append(target)
        else:
            stores.append((result, target))
    for node in parts.exports:
        stores.append((node, places.add("export", node, "now")))
    for i, (before, after) in enumerate(zip(joint.state, joint.new_state)):
        if before in parts.late:
            stores.append((after, places.add("late", before, "after", i)))
    looped = set(parts.backward) | set(parts.recomputed)
    for i, (leaf, gradient) in enumerate(zip(joint.params, joint.d_params)):
        if gradient is not None and gradient in looped and layout_of(leaf, joint.rows) is Layout.ROWS:
            stores.append((gradient, places.add("row_sum", gradient, "row", i, adds=True)))
    sums = {node: f"a_{node.name}" for node in parts.sums}
    accumulators = {node: places.add("sum", node, "flat") for node in parts.sums}
    nodes = [n for n in joint.graph.nodes if n in looped]
    writer = StepWriter(nodes, sums, given, stores, joint.rows, backwards=True)
    totals = {sums[node]: place for node, place in accumulators.items()}
    return _function("gs_backward", writer, places, totals, "for (long t = T - 1; t >= 0; t--)", dtype, cleared)


def _function(
    name: str,
    writer: StepWriter,
    places: _Places,
    totals: dict[str, Place],
    loop: str,
    dtype: torch.dtype,
    cleared: list[Place],
) -> tuple[str, Kernel]:
    body = writer.body()
    for place in cleared:
        target = f"({place.at_first_row()})[j]"
        body.append(f"for (long j = 0; j < L * {place.width}; j++) {target} = 0;")
    for local, total in totals.items():
        body.append(
            f"for (long j = 0; j < {total.width}; j++) {{ {total.base}[thread * {total.width} + j] += {local}[j]; {local}[j] = 0; }}"
        )
    weights = [writer.given[w].base for w in writer.weights]
    text = "\n".join([*body, *weights])
    used = [s for s in places.slots if re.search(rf"\b{s.name}\b", text)]
    real = dtype.itemsize
    lines = [f"\nvoid {name}({_ARGUMENTS}) {{", "  const long R = r1 - r0;", "  const long CHUNK = chunk(R ? R : 1);"]
    rows = [_ROWS]
    for k, slot in enumerate(used):
        kind = c_type(dtype_of(slot.node))
        lines.append(f"  {kind} *{slot.name} = ({kind} *)buf[{k}];")
        if f"at_{slot.name}" in text or f"next_{slot.name}" in text:
            turn = "0" if slot.role == "saved" else "here"
            rows.append(f"    const long at_{slot.name} = entire[{k}] ? {'now' if turn == '0' else 'before'} : {turn};")
        if f"next_{slot.name}" in text:
            rows.append(f"    const long next_{slot.name} = entire[{k}] ? after : there;")
    per_row, fixed, together = 0, 64, 64
    for place in writer.work:
        lines.append(f"  {place.kind} *{place.base} = ({place.kind} *)(work = align64(work));")
        lines.append(f"  work += R * {place.width} * sizeof({place.kind});")
        per_row += place.width * _SIZES.get(place.kind, real)
        fixed += 64
    for place in writer.chunks:
        lines.append(f"  real *{place.base} = (real *)(work = align64(work));")
        lines.append(f"  work += CHUNK * R * {place.width} * sizeof(real);")
        per_row += place.width * real
        fixed += CHUNK_ROWS * place.width * real + 64
    for number, (base, weight) in enumerate(zip(weights, writer.weights)):
        k, n = shape_of(weight)
        lines.append(f"  real *P{number} = (real *)(shared = align64(shared));")
        lines.append(f"  shared += panels({n}) * PANEL * {k} * sizeof(real);")
        lines.append(f"  if (!packed) pack({base}, P{number}, {k}, {n});")
        together += (n + 64) * k * real + 64
    lines.append("  if (!R) return;")
    for local, total in totals.items():
        lines.append(f"  real *{local} = (real *)(work = align64(work));")
        lines.append(f"  for (long j = 0; j < {total.width}; j++) {local}[j] = 0;")
        lines.append(f"  work += {total.width} * sizeof(real);")
        fixed += total.width * real + 64
    lines += [f"  {loop} {{", *rows, *("    " + line for line in body), "  }", "}", ""]
    return "\n".join(lines), Kernel(name, tuple(used), fixed, per_row, together, writer.elements_per_row())
