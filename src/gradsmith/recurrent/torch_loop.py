"""The middle rung: the same split, run with torch operations. Products that depend on x alone are hoisted, states and
saved values go to preallocated buffers, the way back computes the gradient of the state only, and every other
gradient is computed once, for all time steps together."""

from __future__ import annotations

import torch
from torch import Tensor, fx

from gradsmith.native.refused import Refused

from .emit_torch import emit_function
from .engine import Engine, Gradients, Kept
from .rows import Layout, layout_of
from .span import Span
from .split import Split


class TorchEngine(Engine):
    """Same results, same buffers, no compiler."""

    def __init__(self, parts: Split, dtype: torch.dtype) -> None:
        self._prepare(parts, dtype)
        joint = parts.joint
        if any(layout_of(n, joint.rows) is Layout.ROWS for n in joint.params):
            raise Refused("a parameter has a row per batch element")
        constant = [*joint.params, *parts.once]
        self.constant = constant
        self.forward_inputs = [*joint.x, *parts.hoist_results, *joint.state, *constant]
        own = [n for n in parts.saved if n not in set(parts.hoisted)]
        self.own_saved = own
        self.step = emit_function(parts.forward, self.forward_inputs, [*joint.new_state, *joint.y, *own], joint.rows)
        if joint.grad_y or joint.grad_state:
            self._prepare_backward(parts)

    def _prepare_backward(self, parts: Split) -> None:
        joint = parts.joint
        looped = {*parts.recomputed, *parts.backward}
        nodes = [n for n in joint.graph.nodes if n in looped]
        read = (
            {o for n in nodes for o in n.all_input_nodes}
            | {n for n in joint.d_state if n is not None}
            | set(parts.exports)
        )
        self.time_inputs = [
            n for n in read if n not in looped and n not in joint.grad_state and n not in set(self.constant)
        ]
        late = {*self.once_backward.outputs, *self.once_backward.constants, *joint.params}
        self.late = [n for n in self.constant if n in late]
        inputs = [*self.time_inputs, *joint.grad_state, *self.late]
        results = [*(n for n in joint.d_state if n is not None), *parts.exports]
        self.step_back = emit_function(nodes, inputs, results, joint.rows)
        self.read_after |= set(self.time_inputs)

    def forward(
        self, x: list[Tensor], state: list[Tensor], params: list[Tensor], keep: bool, uneven: Tensor | None = None
    ) -> Kept:
        assert uneven is None  # such calls are made with masks on this rung
        parts, joint = self.parts, self.parts.joint
        steps, batch = x[0].shape[:2]
        values: dict[fx.Node, Tensor] = dict(zip(joint.params, params))
        self.once.run(values, batch)
        if parts.hoisted:
            values.update({node: leaf.flatten(0, 1) for node, leaf in zip(joint.x, x)})
            self.hoist.run(values, steps * batch)
        hoisted = [values[n].unflatten(0, (steps, -1)) for n in parts.hoist_results]
        over_time = list(zip(*(t.unbind(0) for t in (*x, *hoisted))))
        device = x[0].device
        kept = self._buffers(state, steps, batch, keep, values, device)
        constant = [values[n] for n in self.constant]
        outputs = iter(kept.outputs)
        y_buffers = [next(outputs) if s is None else None for s in self.y_in_state]
        saved = [t for n, t in zip(parts.saved, kept.saved) if n in set(self.own_saved)] if keep else []
        n_state, n_y = len(joint.state), len(joint.y)
        current = list(state)
        for t, inputs in enumerate(over_time):
            results = self.step(batch, [*inputs, *current, *constant])
            current = list(results[:n_state])
            for buffer, value in zip(kept.states, current):
                buffer[t + 1 if buffer.shape[0] == steps + 1 else (t + 1) & 1] = value
            for output, value in zip(y_buffers, results[n_state : n_state + n_y]):
                if output is not None:
                    output[t] = value
            for buffer, value in zip(saved, results[n_state + n_y :]):
                buffer[t] = value.reshape(buffer.shape[1:])
        return kept

    def _buffers(
        self,
        state: list[Tensor],
        steps: int,
        batch: int,
        keep: bool,
        values: dict[fx.Node, Tensor],
        device: torch.device,
    ) -> Kept:
        joint = self.parts.joint
        shared = {i for i in self.y_in_state if i is not None}
        states: list[Tensor] = []
        for i, (node, first) in enumerate(zip(joint.state, state)):
            whole = i in shared or (keep and node in self.parts.kept_states)
            states.append(first.new_empty((steps + 1 if whole else 2, *first.shape)))
            states[-1][0] = first
        lead = (steps, batch)
        outputs = [self.empty_course(n, lead).to(device) for n, s in zip(joint.y, self.y_in_state) if s is None]
        hoisted = set(self.parts.hoisted)
        saved = [values[n] if n in hoisted else self.empty_course(n, lead).to(device) for n in self.parts.saved]
        return Kept(states, outputs, saved if keep else [])

    def _looked_up(self) -> set[fx.Node]:
        return set(self.time_inputs)

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
        parts, joint = self.parts, self.parts.joint
        steps, batch = x[0].shape[:2]
        values: dict[fx.Node, Tensor] = dict(zip(joint.params, params))
        self.once_backward.run(values, batch)
        span = Span(steps, batch)
        courses = self._courses(x, self._outputs(kept, span), kept, grad_y, span)
        late = [values[n] for n in self.late]
        over_time = list(zip(*(self._as_traced(n, courses[n], batch).unbind(0) for n in self.time_inputs)))
        for node in parts.exports:
            courses[node] = self.empty_course(node, span.lead).to(x[0].device)
        current = list(grad_state)
        moving = [i for i, n in enumerate(joint.d_state) if n is not None]
        for t in range(steps - 1, -1, -1):
            results = self.step_back(batch, [*(over_time[t] if over_time else ()), *current, *late])
            current = [torch.zeros_like(c) for c in current]
            for i, gradient in zip(moving, results):
                current[i] = gradient
            for node, value in zip(parts.exports, results[len(moving) :]):
                courses[node][t] = value.reshape(courses[node].shape[1:])
        carries = {i: torch.stack([g, g]) for i, g in enumerate(current) if g.dtype.is_floating_point}
        return self._collect(values, courses, carries, {}, span)

    def _as_traced(self, node: fx.Node, course: Tensor, batch: int) -> Tensor:
        """A time course with rows as they were traced: (T, B * n, ...)."""
        shape = node.meta["val"].shape
        return course.reshape(course.shape[0], shape[0] // self.parts.joint.rows * batch, *shape[1:])
