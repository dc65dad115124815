"""Stage 2: sort the captured operations by when they have to happen.

    once        depends on parameters only
    hoisted     depends on x only, and is a matrix product or leads to one: one call for all time steps
    forward     the loop over time
    backward    the loop back: the gradient of the state, and whatever is cheapest while its operands are in cache
    after       the gradients that can wait: one matrix product over all T*B rows per weight

On a CPU only matrix products are worth moving out of the loop. Batching pointwise operations over all time steps
sends every operand through memory and made the layer-norm LSTM slower than a plain loop.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import fx

from gradsmith.native.refused import Refused

from .capture import Joint
from .nodes import args_of
from .rows import Layout, check_rowwise, dims_of, layout_of

aten = torch.ops.aten

MATRIX_PRODUCTS = frozenset({aten.mm.default})
_HOISTED_WHOLE = frozenset({aten.embedding.default})
# Sums over time may be taken before these instead of after: they are linear in what was reduced over the batch.
_LINEAR = frozenset({
    aten.permute.default, aten.view.default, aten.reshape.default, aten.expand.default, aten.unsqueeze.default,
    aten.squeeze.dims, aten.squeeze.dim, aten.sum.dim_IntList, aten.neg.default, aten.slice.Tensor, aten.select.int,
    aten.cat.default, aten.add.Tensor, aten.sub.Tensor, aten.slice_scatter.default, aten.select_scatter.default,
    aten.tril.default, aten.triu.default,
})  # fmt: skip
_BILINEAR = frozenset({aten.mul.Tensor, aten.mm.default, aten.div.Tensor, aten.bmm.default, aten.where.self})


@dataclass
class Split:
    """The stages of one captured step; every list is in the order of computation."""

    joint: Joint
    once: list[fx.Node] = field(default_factory=list)
    hoisted: list[fx.Node] = field(default_factory=list)
    forward: list[fx.Node] = field(default_factory=list)
    saved: list[fx.Node] = field(default_factory=list)
    kept_states: set[fx.Node] = field(default_factory=set)
    readable: set[fx.Node] = field(default_factory=set)
    """Outputs and states whose time course backward may read."""
    late: list[fx.Node] = field(default_factory=list)
    """States that backward computes again, for the deferred products: at step t, the one after it."""
    recomputed: list[fx.Node] = field(default_factory=list)
    backward: list[fx.Node] = field(default_factory=list)
    sums: list[fx.Node] = field(default_factory=list)
    exports: list[fx.Node] = field(default_factory=list)
    after: list[fx.Node] = field(default_factory=list)

    @property
    def hoist_results(self) -> list[fx.Node]:
        """Hoisted values that the loops or the saved set read."""
        inside = set(self.hoisted)
        wanted = set(self.forward) | set(self.backward) | set(self.recomputed) | set(self.after)
        ends = {*self.joint.y, *self.joint.new_state}
        return [n for n in self.hoisted if n in ends or any(u in wanted and u not in inside for u in n.users)]


def split(joint: Joint, in_loop: Callable[[fx.Node], bool], defer: bool) -> Split:
    """`in_loop` says which operations the loop can compute; `defer` moves every gradient that can wait out of the
    loop (right for a GPU, wrong for a CPU). What forward saves is decided next, in saving.py."""
    parts = Split(joint)
    order = [n for n in joint.graph.nodes if n.op == "call_function" or n.op == "get_attr"]
    depends = _Dependence(joint)
    needed_forward = _ancestors([*joint.y, *joint.new_state])
    timeless = {n for n in order if not depends.on(n, "x", "state", "grad") and not _is_row_constant(n, joint.rows)}
    parts.once = [n for n in order if n in timeless]
    _check_once(parts, depends)
    parts.hoisted = _hoisted(order, joint, depends, needed_forward, timeless, in_loop)
    moved = timeless | set(parts.hoisted)
    parts.forward = [n for n in order if n in needed_forward and n not in moved]
    for node in [*parts.hoisted, *parts.forward]:
        check_rowwise(node, joint.rows)
    for node in [*joint.y, *joint.new_state]:
        if layout_of(node, joint.rows) is not Layout.ROWS:
            raise Refused("an output of the step has no batch dimension")
    backward = [n for n in order if n not in needed_forward and n not in moved]
    carried = _ancestors([n for n in joint.d_state if n is not None])
    _divide_backward(parts, backward, carried, in_loop, defer)
    return parts


class _Dependence:
    """For every node: which kinds of inputs it depends on."""

    def __init__(self, joint: Joint) -> None:
        kinds: dict[fx.Node, frozenset[str]] = {}
        for kind, nodes in (
            ("x", joint.x), ("state", joint.state), ("param", joint.params), ("grad", [*joint.grad_y, *joint.grad_state])
        ):  # fmt: skip
            for node in nodes:
                label = "rowparam" if kind == "param" and layout_of(node, joint.rows) is Layout.ROWS else kind
                kinds[node] = frozenset({label})
        for node in joint.graph.nodes:
            if node.op != "placeholder":
                kinds[node] = frozenset().union(*(kinds.get(o, frozenset()) for o in node.all_input_nodes))
        self.kinds = kinds

    def on(self, node: fx.Node, *kinds: str) -> bool:
        return not self.kinds[node].isdisjoint(kinds)


def _ancestors(nodes: list[fx.Node]) -> set[fx.Node]:
    found: set[fx.Node] = set()
    stack = list(nodes)
    while stack:
        node = stack.pop()
        if node not in found:
            found.add(node)
            stack.extend(node.all_input_nodes)
    return found


def _is_row_constant(node: fx.Node, rows: int) -> bool:
    """A constant with a row per batch element, such as zeros like the state: made in the loop, where it is a literal."""
    return layout_of(node, rows) is not Layout.FLAT and not node.all_input_nodes


def _check_once(parts: Split, depends: _Dependence) -> None:
    for node in parts.once:
        if depends.on(node, "rowparam"):
            check_rowwise(node, parts.joint.rows)


def _hoisted(
    order: list[fx.Node],
    joint: Joint,
    depends: _Dependence,
    needed: set[fx.Node],
    timeless: set[fx.Node],
    in_loop: Callable[[fx.Node], bool],
) -> list[fx.Node]:
    def only_x(node: fx.Node) -> bool:
        return node in needed and depends.on(node, "x") and not depends.on(node, "state", "rowparam", "grad")

    roots = [
        n for n in order
        if only_x(n) and (n.target in MATRIX_PRODUCTS or n.target in _HOISTED_WHOLE or (n not in timeless and not in_loop(n)))
    ]  # fmt: skip
    chosen = _ancestors(roots)
    return [n for n in order if n in chosen and n not in timeless]


def _divide_backward(
    parts: Split, backward: list[fx.Node], carried: set[fx.Node], in_loop: Callable[[fx.Node], bool], defer: bool
) -> None:
    joint = parts.joint
    depends = _Dependence(joint)
    after: set[fx.Node] = set()
    reduced: set[fx.Node] = set()
    for node in backward:
        if node in carried:
            check_rowwise(node, joint.rows)
            parts.backward.append(node)
            continue
        layout = layout_of(node, joint.rows)
        late = any(o in after for o in node.all_input_nodes)
        if layout is Layout.FLAT:
            _check_linear(node, reduced, joint.rows, depends)
            reduced.add(node)
            if _is_batch_sum(node, joint.rows) and not late and not defer and in_loop(node):
                parts.sums.append(node)
            after.add(node)
        elif (
            layout is Layout.CROSSED or late or node.target in MATRIX_PRODUCTS or not in_loop(node) or
            (defer and depends.on(node, "grad"))
        ):  # fmt: skip
            after.add(node)
        else:
            check_rowwise(node, joint.rows)
            parts.backward.append(node)
    parts.after = [n for n in backward if n in after and n not in parts.sums]


def _is_batch_sum(node: fx.Node, rows: int) -> bool:
    if node.target is not aten.sum.dim_IntList:
        return False
    source: fx.Node = args_of(node)[0]
    return layout_of(source, rows) is Layout.ROWS and 0 in dims_of(node)


def _check_linear(node: fx.Node, reduced: set[fx.Node], rows: int, depends: _Dependence) -> None:
    """What follows a reduction over the batch runs once, on the sum over time; that is only right if it is linear."""
    operands = node.all_input_nodes
    moving = [o for o in operands if layout_of(o, rows) is not Layout.FLAT or o in reduced]
    if all(o not in reduced for o in operands):
        if node.target in (aten.mm.default, aten.embedding_dense_backward.default) or _is_batch_sum(node, rows):
            return
        raise Refused(f"{node.target} reduces over the batch in backward")
    if node.target in _LINEAR and len(moving) == len(operands):
        return
    if node.target in _LINEAR and node.target not in (aten.add.Tensor, aten.sub.Tensor):
        others = [o for o in operands if o not in moving]
        if all(_is_zero(o) for o in others):
            return
    if node.target in _BILINEAR and len(moving) == 1 and all(layout_of(o, rows) is Layout.FLAT for o in operands):
        divided_by = node.target is aten.div.Tensor and args_of(node)[1] in moving
        if not divided_by and node.target is not aten.where.self:
            return
    if node.target is aten.where.self and args_of(node)[0] not in moving:
        linear = all(a in moving or _is_zero(a) for a in args_of(node)[1:])
        if linear:
            return
    if not moving or not any(depends.on(o, "grad") for o in operands):
        return
    raise Refused(f"{node.target} is not linear in a gradient summed over the batch")


def _is_zero(value: object) -> bool:
    if isinstance(value, fx.Node):
        filled = {aten.full.default: 1, aten.scalar_tensor.default: 0, aten.full_like.default: 1}
        return value.target in filled and args_of(value)[filled[value.target]] == 0
    return value == 0
