"""Stage 4a: run an emitted plan: buffers in, loops over time, gradients out. Plain tensors, no autograd."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, fx

from gradsmith.native.compile import load
from gradsmith.native.memory import reuse_freed_pages, room
from gradsmith.native.products import addresses, matmul
from gradsmith.native.threads import run_shares

from .emit_c import Emitted, Kernel, shared_state
from .emit_torch import emit_function
from .nodes import dtype_of, shape_of
from .rows import Layout, layout_of, per_row
from .span import Span
from .split import Split


@dataclass
class Kept:
    """What forward leaves behind: whole time courses of states, outputs and saved values."""

    states: list[Tensor]
    outputs: list[Tensor]
    saved: list[Tensor]


@dataclass
class Gradients:
    x: list[Tensor | None]
    state: list[Tensor | None]
    params: list[Tensor | None]


class Engine:
    """A compiled plan. Holds no tensors between calls, so any number of threads may use it at once."""

    def __init__(self, parts: Split, emitted: Emitted, dtype: torch.dtype) -> None:
        self._prepare(parts, dtype)
        self.emitted = emitted
        library = load(emitted.source)
        self.products = addresses(dtype)
        self.forward_loop = _function(library, "gs_forward")
        self.backward_loop = _function(library, "gs_backward") if emitted.backward else None

    def _prepare(self, parts: Split, dtype: torch.dtype) -> None:
        reuse_freed_pages()
        self.parts, self.dtype = parts, dtype
        joint = parts.joint
        self.y_in_state = [shared_state(parts, j) for j in range(len(joint.y))]
        self.hoisted_nodes = set(parts.hoisted)
        self.once = _Stage(parts.once, parts)
        self.hoist = _Stage(parts.hoisted, parts)
        self.after = _Stage(parts.after, parts)
        self.read_after = set(self.after.inputs)
        self.row_params = [layout_of(node, joint.rows) is Layout.ROWS for node in joint.params]
        needed_late = _needed_once(parts)
        self.once_backward = _Stage([n for n in parts.once if n in needed_late], parts)

    # -- forward

    def forward(
        self, x: list[Tensor], state: list[Tensor], params: list[Tensor], keep: bool, uneven: Tensor | None = None
    ) -> Kept:
        """What one call leaves. x has time in front, or, with `uneven`, the rows that a `Span` describes."""
        joint = self.parts.joint
        span = Span.of(x, state, uneven)
        values: dict[fx.Node, Tensor] = dict(zip(joint.params, params))
        self.once.run(values, span.batch)
        if self.parts.hoisted:
            values.update({node: span.flat(leaf) for node, leaf in zip(joint.x, x)})
            self.hoist.run(values, span.rows)
        shared = {i for i in self.y_in_state if i is not None}
        states: list[Tensor] = []
        wholes: dict[int, bool] = {}
        for i, (node, first) in enumerate(zip(joint.state, state)):
            wholes[i] = i in shared or (keep and node in self.parts.kept_states)
            buffer = room((*span.lead_of_states(wholes[i]), *first.shape[1:]), first.dtype)
            span.put_first(buffer, first)
            states.append(buffer)
        outputs = [
            self.empty_course(node, span.lead) if s is None else None for node, s in zip(joint.y, self.y_in_state)
        ]
        saved = [
            values[node].contiguous()
            if node in self.hoisted_nodes
            else self.empty_course(node, span.lead if keep else (1, span.batch))
            for node in self.parts.saved
        ]
        kernel = self.emitted.forward
        buffers: list[Tensor] = []
        whole: list[bool] = []
        for slot in kernel.slots:
            flag = True
            if slot.role == "x":
                tensor = x[slot.position].contiguous()
            elif slot.role == "state":
                tensor, flag = states[slot.position], wholes[slot.position]
            elif slot.role == "y":
                found = outputs[slot.position]
                assert found is not None
                tensor = found
            elif slot.role == "saved":
                tensor, flag = saved[self.parts.saved.index(slot.node)], keep
            else:
                tensor = values[slot.node].contiguous()
            buffers.append(tensor)
            whole.append(flag)
        self._call(self.forward_loop, kernel, buffers, whole, span, self._shares(kernel, span))
        return Kept(states, [o for o in outputs if o is not None], saved if keep else [])

    def results(self, kept: Kept, span: Span) -> tuple[list[Tensor], list[Tensor]]:
        """(y, last state); y, and the last state where all sequences are as long, as views of what forward left."""
        return self._outputs(kept, span), [span.last(states) for states in kept.states]

    def _outputs(self, kept: Kept, span: Span) -> list[Tensor]:
        given = iter(kept.outputs)
        return [next(given) if s is None else span.after(kept.states[s]) for s in self.y_in_state]

    # -- backward

    @functools.cached_property
    def read_in_backward(self) -> list[bool]:
        """For every tensor of `Kept` in order, whether backward reads it; the others need not be held."""
        joint = self.parts.joint
        read = self._looked_up() | set(self.after.inputs) | {n for n in (*joint.d_x, *joint.d_params) if n is not None}
        read -= set(self.parts.late)
        through_y = {s for s, node in zip(self.y_in_state, joint.y) if s is not None and node in read}
        states = [
            before in read or after in read or i in through_y
            for i, (before, after) in enumerate(zip(joint.state, joint.new_state))
        ]
        outputs = [node in read for node, s in zip(joint.y, self.y_in_state) if s is None]
        return [*states, *outputs, *(True for _ in self.parts.saved)]

    def _looked_up(self) -> set[fx.Node]:
        """The nodes whose time courses the backward loop is given."""
        return {slot.node for slot in self.emitted.backward.slots} if self.emitted.backward else set()

    def backward(
        self,
        x: list[Tensor],
        state: list[Tensor],
        params: list[Tensor],
        kept: Kept,
        grad_y: list[Tensor],
        grad_state: list[Tensor],
        uneven: Tensor | None = None,
    ) -> Gradients:
        joint = self.parts.joint
        assert self.backward_loop is not None and self.emitted.backward is not None
        span = Span.of(x, state, uneven)
        values: dict[fx.Node, Tensor] = dict(zip(joint.params, params))
        self.once_backward.run(values, span.batch)
        courses = self._courses(x, self._outputs(kept, span), kept, grad_y, span)
        carries: dict[int, Tensor] = {}
        for i, gradient in enumerate(grad_state):
            if gradient.dtype.is_floating_point:
                carries[i] = torch.empty((2, *gradient.shape), dtype=gradient.dtype)
                # In both: a sequence that ends earlier starts at an odd or an even step.
                carries[i][:] = gradient
        kernel = self.emitted.backward
        rows = self._shares(kernel, span)
        sums: dict[fx.Node, Tensor] = {}
        row_sums: dict[int, Tensor] = {}
        late: dict[fx.Node, Tensor] = {}
        buffers: list[Tensor] = []
        for slot in kernel.slots:
            if slot.role == "carry":
                tensor = carries[slot.position]
            elif slot.role == "state":
                tensor = kept.states[slot.position]
            elif slot.role == "export":
                tensor = courses[slot.node] = self.empty_course(slot.node, span.lead)
            elif slot.role == "late":
                own = state[slot.position]
                tensor = late[slot.node] = own.new_empty((*span.lead_of_states(True), *own.shape[1:]))
                span.put_first(tensor, own)
            elif slot.role == "sum":
                tensor = sums[slot.node] = torch.zeros((len(rows), *shape_of(slot.node)), dtype=self.dtype)
            elif slot.role == "row_sum":
                tensor = row_sums[slot.position] = torch.zeros_like(params[slot.position])
            elif slot.node in courses:
                tensor = courses[slot.node].contiguous()
            else:
                tensor = values[slot.node].contiguous()
            buffers.append(tensor)
        self._call(self.backward_loop, kernel, buffers, [True] * len(buffers), span, rows)
        courses.update({node: span.before(states) for node, states in late.items()})
        values.update({node: total.sum(0) if len(rows) > 1 else total[0] for node, total in sums.items()})
        return self._collect(values, courses, carries, row_sums, span)

    def _courses(
        self, x: list[Tensor], y: list[Tensor], kept: Kept, grad_y: list[Tensor], span: Span
    ) -> dict[fx.Node, Tensor]:
        """Row values for all of time, as (T, B, ...) or as a `Span` has them."""
        joint = self.parts.joint
        courses: dict[fx.Node, Tensor] = dict(zip(joint.x, x))
        courses.update(zip(joint.grad_y, grad_y))
        for node, after, buffer in zip(joint.state, joint.new_state, kept.states):
            if span.is_whole(buffer):
                courses[after] = span.after(buffer)
                if node in self.read_after:
                    courses[node] = span.before(buffer)
        courses.update(zip(joint.y, y))
        for node, tensor in zip(self.parts.saved, kept.saved):
            courses[node] = tensor.reshape(*span.lead, *_row(node, joint.rows))
        return courses

    def _collect(
        self,
        values: dict[fx.Node, Tensor],
        courses: dict[fx.Node, Tensor],
        carries: dict[int, Tensor],
        row_sums: dict[int, Tensor],
        span: Span,
    ) -> Gradients:
        joint = self.parts.joint
        for node, row in self.after.rows.items():
            if node in courses:
                values[node] = courses[node].reshape(span.rows * row[0], *row[1:])
            elif node in values:
                lone = values[node]
                values[node] = lone.expand(span.steps, *lone.shape).flatten(0, 1)
        self.after.run(values, span.rows)

        def course(node: fx.Node) -> Tensor:
            if node in courses:
                return courses[node]
            return values[node].reshape(*span.lead, *_row(node, joint.rows))

        d_x = [None if n is None else course(n) for n in joint.d_x]
        d_state = [carries[i][1].clone() if i in carries else None for i in range(len(joint.d_state))]
        d_params: list[Tensor | None] = []
        for i, (rowwise, gradient) in enumerate(zip(self.row_params, joint.d_params)):
            if gradient is None:
                d_params.append(None)
            elif rowwise:
                d_params.append(row_sums[i] if i in row_sums else course(gradient).sum(0))
            else:
                d_params.append(values[gradient])
        return Gradients(d_x, d_state, d_params)

    def forward_shapes(
        self, x: list[Tensor], state: list[Tensor], keep: bool, uneven: Tensor | None = None
    ) -> list[Tensor]:
        """Empty tensors like those forward returns: what a fake kernel needs to know."""
        joint = self.parts.joint
        span = Span.of(x, state, uneven)
        if uneven is not None:
            span.__dict__["rows"] = x[0].shape[0]  # what `uneven` ends with, without looking at it
        shared = {i for i in self.y_in_state if i is not None}
        result = []
        for i, (node, first) in enumerate(zip(joint.state, state)):
            whole = i in shared or (keep and node in self.parts.kept_states)
            result.append(first.new_empty((*span.lead_of_states(whole), *first.shape[1:])))
        result += [self.empty_course(node, span.lead) for node, s in zip(joint.y, self.y_in_state) if s is None]
        hoisted = set(self.parts.hoisted)
        for node in self.parts.saved if keep else []:
            rest = shape_of(node)[1:]
            n = per_row(node, joint.rows)[0]
            result.append(
                torch.empty((span.rows * n, *rest), dtype=dtype_of(node))
                if node in hoisted
                else self.empty_course(node, span.lead)
            )
        return result

    @functools.cached_property
    def gradients_present(self) -> list[bool]:
        """For x, state and params: whether backward returns a gradient."""
        joint = self.parts.joint
        states = [dtype_of(node).is_floating_point for node in joint.state]
        return [*(n is not None for n in joint.d_x), *states, *(n is not None for n in joint.d_params)]

    # -- shared

    def empty_course(self, node: fx.Node, lead: Sequence[int]) -> Tensor:
        """Room for all time steps of a node."""
        return room((*lead, *_row(node, self.parts.joint.rows)), dtype_of(node))

    def _shares(self, kernel: Kernel, span: Span) -> list[tuple[int, int]]:
        return span.shares(kernel.work_per_row, _WORTH_A_THREAD)

    def _call(
        self,
        function: Any,
        kernel: Kernel,
        buffers: list[Tensor],
        whole: list[bool],
        span: Span,
        rows: list[tuple[int, int]],
    ) -> None:
        pointers = (ctypes.c_void_p * max(1, len(buffers)))(*(b.data_ptr() for b in buffers))
        wholes = (ctypes.c_long * max(1, len(whole)))(*whole)
        arguments = pointers, wholes, span.first.data_ptr(), span.steps, span.batch

        # Threads read the same weights, which then take the last cache once; packed by each of its own, as often as threads.
        shared = torch.empty(kernel.shared_bytes, dtype=torch.uint8)
        packed = len(rows) > 1

        def call(thread: int, first: int, last: int) -> None:
            work = torch.empty(kernel.work_bytes(last - first), dtype=torch.uint8)
            places = work.data_ptr(), shared.data_ptr()
            function(*arguments, first, last, thread, packed, *places, self.products)

        if packed:
            function(*arguments, 0, 0, 0, False, None, shared.data_ptr(), self.products)
        run_shares(call, rows)


# 0.8 ms of a loop, at 0.27 ns for a unit of work: with half of its rows each product is less efficient, and below
# this (batch 8, 64 units, 256 steps) two threads took longer than one for every cell.
_WORTH_A_THREAD = 3 << 20
_INSTEAD = {torch.ops.aten.mm.default: matmul}


class _Stage:
    """Nodes that torch runs, whole: once per call, or once for all time steps."""

    def __init__(self, nodes: list[fx.Node], parts: Split) -> None:
        joint, inside = parts.joint, set(nodes)
        self.constants = {n: joint.constants[str(n.target)] for n in nodes if n.op == "get_attr"}
        computed = [n for n in nodes if n.op != "get_attr"]
        read = {o for n in computed for o in n.all_input_nodes if o not in inside or o in self.constants}
        self.inputs = [n for n in joint.graph.nodes if n in read]
        self.outputs = computed
        self.rows = {n: per_row(n, joint.rows) for n in self.inputs if layout_of(n, joint.rows) is Layout.ROWS}
        self.function = emit_function(computed, self.inputs, self.outputs, joint.rows, _INSTEAD)

    def run(self, values: dict[fx.Node, Tensor], rows: int) -> None:
        values.update(self.constants)
        if self.outputs:
            values.update(zip(self.outputs, self.function(rows, [values[n] for n in self.inputs])))


def _row(node: fx.Node, rows: int) -> tuple[int, ...]:
    """The shape of one batch element: (rows, d) holds (d,), (rows * n, d) holds (n, d)."""
    n, *rest = per_row(node, rows)
    return tuple(rest) if n == 1 else (n, *rest)


def _needed_once(parts: Split) -> set[fx.Node]:
    used = {o for n in (*parts.backward, *parts.recomputed, *parts.after, *parts.sums) for o in n.all_input_nodes}
    used |= {n for n in parts.joint.d_params if n is not None}
    stack = [n for n in used if n in set(parts.once)]
    found: set[fx.Node] = set()
    while stack:
        node = stack.pop()
        if node not in found:
            found.add(node)
            stack.extend(node.all_input_nodes)
    return found


def _function(library: ctypes.CDLL, name: str) -> Any:
    function = getattr(library, name)
    pointer, longs = ctypes.c_void_p, [ctypes.c_long] * 6
    function.argtypes = [pointer, pointer, pointer, *longs, pointer, pointer, pointer]
    function.restype = None
    return function
