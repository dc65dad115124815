"""Stage 2b: what forward keeps for backward, and what backward computes again.

Usually y is kept for nothing: whoever called holds it too, until its own backward is through. So y, and a state that
is also y, count as free. But a spiking cell whose spikes are its output could do without them, since they follow from
the potential; where giving up y saves a quarter of all that is held, it is given up.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import fx

from .capture import Joint
from .mincut import cheapest_to_keep
from .nodes import dtype_of
from .rows import elements
from .split import MATRIX_PRODUCTS, Split

aten = torch.ops.aten
_WORTH_GIVING_UP_Y = 0.75


@dataclass
class _Choice:
    """Values to keep, and states to compute again: at step t only the state after it can be, hence "late"."""

    keep: set[fx.Node]
    late: list[fx.Node] = field(default_factory=list)


def choose_saved(parts: Split, recompute: bool) -> None:
    """Decide what forward keeps; `recompute` trades saved values for work."""
    joint = parts.joint
    if not joint.grad_state and not joint.grad_y:
        return
    inside = [*joint.state, *parts.hoist_results, *parts.forward]
    later = set(parts.backward) | set(parts.after) | set(parts.sums)
    results = _gradient_results(joint)
    needed = [n for n in inside if any(u in later for u in n.users) or n in results]
    choice, lean = _Choice(set(needed)), False
    if recompute:
        choice = _usual(parts, inside, needed)
        without_y = _without_y(parts, inside, needed)
        lean = _held(joint, without_y) <= _WORTH_GIVING_UP_Y * _held(joint, choice)
        choice = without_y if lean else choice
    keep, pairs = choice.keep, list(zip(joint.new_state, joint.state))
    outputs = set(joint.y)
    parts.kept_states = {
        before for after, before in pairs if before in keep or (after in keep and (lean or after not in outputs))
    }
    parts.readable = (keep & outputs) if lean else outputs
    parts.readable |= {before for after, before in pairs if before in parts.kept_states or after in parts.readable}
    parts.late = choice.late
    spoken_for = set(joint.state) | outputs | {after for after, before in pairs if before in parts.kept_states}
    parts.saved = [n for n in inside if n in keep and n not in spoken_for]
    after_late = {after for after, before in pairs if before in choice.late}
    parts.recomputed = _again(parts, keep, [*(n for n in needed if n not in choice.late), *after_late])
    _find_exports(parts)


def _usual(parts: Split, inside: list[fx.Node], needed: list[fx.Node]) -> _Choice:
    outputs = set(parts.joint.y)
    free = outputs | {before for after, before in zip(parts.joint.new_state, parts.joint.state) if after in outputs}
    return _Choice(_cut(parts, inside, needed, free))


def _without_y(parts: Split, inside: list[fx.Node], needed: list[fx.Node]) -> _Choice:
    """The cheapest choice if y is not there. A state that only the deferred products read may be computed late."""
    joint = parts.joint
    in_loop = set(parts.backward) | set(parts.sums)
    forward, results = set(parts.forward), _gradient_results(joint)
    late = {
        before: after
        for after, before in zip(joint.new_state, joint.state)
        if before in needed and after in forward and before not in results and not in_loop & set(before.users)
    }
    wanted = [*(n for n in needed if n not in late), *(n for n in late.values() if n not in needed)]
    keep = _cut(parts, inside, wanted, set())
    for before, after in late.items():
        if after in keep:
            keep.add(before)
    return _Choice(keep, [before for before in late if before not in keep])


def _cut(parts: Split, inside: list[fx.Node], needed: list[fx.Node], free: set[fx.Node]) -> set[fx.Node]:
    joint = parts.joint
    forward, hoisted = set(inside), set(parts.hoisted)
    given = [
        n
        for n in inside
        if n in hoisted or n.op == "placeholder" or n.target in MATRIX_PRODUCTS or n.target is aten.bmm.default
    ]
    operands = {n: [o for o in n.all_input_nodes if o in forward] for n in inside}
    pairs = list(zip(joint.new_state, joint.state))
    while True:
        cost = {n: 0 if n in free else _bytes(n, joint) for n in inside}
        keep = set(cheapest_to_keep(cost, operands, given, needed))
        # A state and its successor share one buffer, so the second of them costs nothing.
        more = {before for after, before in pairs if after in keep}
        more |= {after for after, before in pairs if before in keep}
        if more <= free:
            return keep
        free = free | more


def _bytes(node: fx.Node, joint: Joint) -> int:
    return elements(node, joint.rows) * dtype_of(node).itemsize


def _held(joint: Joint, choice: _Choice) -> int:
    """Bytes per row and step; a state and its successor are one buffer."""
    buffer_of = dict(zip(joint.new_state, joint.state))
    return sum(_bytes(node, joint) for node in {buffer_of.get(node, node) for node in choice.keep})


def _again(parts: Split, keep: set[fx.Node], needed: list[fx.Node]) -> list[fx.Node]:
    known = keep | set(parts.joint.x) | set(parts.once) | set(parts.joint.params)
    again: set[fx.Node] = set()
    stack = [n for n in needed if n not in keep]
    while stack:
        node = stack.pop()
        if node in again or node in known or node.op == "placeholder":
            continue
        again.add(node)
        stack.extend(node.all_input_nodes)
    return [n for n in parts.forward if n in again]


def _gradient_results(joint: Joint) -> set[fx.Node]:
    return {n for n in (*joint.d_x, *joint.d_state, *joint.d_params) if n is not None}


def _find_exports(parts: Split) -> None:
    """Values of the backward loop that are read afterwards, for all time steps at once."""
    after = set(parts.after)
    computed = set(parts.recomputed) | set(parts.backward)
    d_x = {n for n in parts.joint.d_x if n is not None}
    computed |= set(parts.joint.grad_state)
    parts.exports = [
        n for n in parts.joint.graph.nodes if n in computed and (n in d_x or any(u in after for u in n.users))
    ]
