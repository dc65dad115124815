"""Second derivatives at the speed of the engine: the derivative of a backward loop is a forward and a backward loop again.

For vectors v, <v, backward(g)> = <g, forward'(v)>: the change of y and of the last state along v. So to differentiate the
gradients, the step is run together with its change along v, as one larger step, and that step is planned like any other.
The change comes from the captured backward (its transpose), not from forward: a surrogate stays a surrogate.

    step(x, state, params)  ->  step((x, v_x), (state, v_state), (params, v_params)) -> (y, dy), (state', dstate')

Before it is used, it must agree with the user's own step, run as a loop under autograd and differentiated twice.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, fx

from gradsmith.native.refused import Refused

from .capture import Joint
from .emit_torch import emit_function
from .engine import Engine
from .plan import Plan

Replay = Callable[[list[Tensor], list[Tensor], list[Tensor]], tuple[list[Tensor], list[Tensor]]]
First = Callable[..., list[Tensor]]
Run = Callable[..., tuple[list[Tensor], list[Tensor]]]
_STEPS = 3
_TOLERANCE = 2e-3
_planning = threading.RLock()
_tangents: WeakKeyDictionary[Engine, dict[int, Plan | None]] = WeakKeyDictionary()


@dataclass(frozen=True)
class Parts:
    """The arguments of one call: leaves of the step in the engine's dtype, and what backward is given."""

    x: list[Tensor]
    state: list[Tensor]
    params: list[Tensor]
    gradients: list[Tensor]

    @property
    def leaves(self) -> list[Tensor]:
        return [*self.x, *self.state, *self.params]


def gradients_of(engine: Engine, first: First, run: Run, replay: Replay, parts: Parts) -> list[Tensor | None] | None:
    """The gradients of all leaves as a function that can be differentiated; None where no plan for that was found.

    `first` computes them by the engine, `run` runs another engine under autograd, `replay` the user's own loop.
    """
    plan = _tangent_plan(engine, first, run, replay, parts)
    if plan is None:
        return None
    found = iter(Twice.apply(engine, plan, first, run, len(parts.x), len(parts.state), *parts.leaves, *parts.gradients))
    return [next(found) if present else None for present in engine.gradients_present]


class Twice(torch.autograd.Function):
    """The gradients that are there, computed by the engine; their derivative by the plan of the larger step."""

    @staticmethod
    def forward(
        ctx: Any, engine: Engine, plan: Plan, first: First, run: Run, n_x: int, n_state: int, *tensors: Tensor
    ) -> Any:
        ctx.engine, ctx.plan, ctx.run, ctx.n_x, ctx.n_state = engine, plan, run, n_x, n_state
        ctx.save_for_backward(*tensors)
        return tuple(first())

    @staticmethod
    def backward(ctx: Any, *along: Tensor) -> Any:
        again = torch.is_grad_enabled()
        tensors = list(ctx.saved_tensors)
        with torch.enable_grad():
            # The directions may depend on the leaves; what is wanted here is the derivative with the directions held fixed.
            tensors = [t.view_as(t) if again else t.detach().requires_grad_(t.dtype.is_floating_point) for t in tensors]
            y, last = _changes(ctx, tensors, list(along))
            n_leaves = len(ctx.engine.gradients_present)
            pairs = [(out, g) for out, g in zip((*y, *last), tensors[n_leaves:]) if out.requires_grad]
            sources = [t for t in tensors[:n_leaves] if t.requires_grad]
            found = iter(
                torch.autograd.grad(
                    [out for out, _ in pairs], sources, [g for _, g in pairs], create_graph=again, allow_unused=True
                )
            )
        by_leaf = [next(found) if t.requires_grad else None for t in tensors[:n_leaves]]
        return (*[None] * 6, *by_leaf, *(out if again else out.detach() for out in (*y, *last)))


def _changes(ctx: Any, tensors: list[Tensor], along: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
    """How y and the last state change along the given directions of the leaves."""
    engine, joint = ctx.engine, ctx.engine.parts.joint
    n_x, n_state = ctx.n_x, ctx.n_state
    present, given = engine.gradients_present, iter(along)
    leaves = tensors[: len(present)]
    directions = [next(given) if there else None for there in present]
    groups = []
    for low, high in ((0, n_x), (n_x, n_x + n_state), (n_x + n_state, len(present))):
        groups.append([*leaves[low:high], *(v for v in directions[low:high] if v is not None)])
    y, last = ctx.run(ctx.plan, *groups)
    return y[len(joint.y) :], last[len(joint.new_state) :]


def _tangent_plan(engine: Engine, first: First, run: Run, replay: Replay, parts: Parts) -> Plan | None:
    batch = parts.x[0].shape[1]
    with _planning, torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        known = _tangents.setdefault(engine, {})
        if batch not in known:
            try:
                known[batch] = _planned(engine, first, run, replay, parts)
            except Refused:
                known[batch] = None
        return known[batch]


def _planned(engine: Engine, first: First, run: Run, replay: Replay, parts: Parts) -> Plan | None:
    from .ladder import Call, choose, loop_of
    from .structure import flatten
    from .surroundings import Surroundings, look_around

    joint = engine.parts.joint
    floats = [n.meta["val"].dtype.is_floating_point for n in (*joint.y, *joint.state)]
    if not all(floats) or type(engine) is not Engine:
        return None
    step = _larger_step(joint, engine.dtype)
    groups = []
    flags = iter(engine.gradients_present)
    for group in (parts.x, parts.state, parts.params):
        there = [next(flags) for _ in group]
        groups.append([t.detach() for t in group] + [torch.zeros_like(t) for t, has in zip(group, there) if has])
    with torch.enable_grad():
        x, state, params = (
            tuple(t.requires_grad_() if t.is_floating_point() else t for t in group) for group in groups
        )
        given = [flatten(tree, name, "scan") for tree, name in ((x, "x"), (state, "state"), (params, "params"))]
        around = Surroundings(key=look_around(step).key)
        call = Call(step, given[0], given[1], given[2], around, True, None)
        plan = choose(call, "c")
        plan.loop = loop_of(call)
    if plan.engine is None or not _agrees(engine, plan, run, replay, parts):
        return None
    return plan


def _larger_step(joint: Joint, dtype: torch.dtype) -> Callable[..., Any]:
    """The captured step and its change, as a step of its own; in float64, too, which it is checked in."""
    constants = [n for n in joint.graph.nodes if n.op == "get_attr"]
    nodes = [n for n in joint.graph.nodes if n.op == "call_function"]
    backs: list[fx.Node] = [n for n in (*joint.d_x, *joint.d_state, *joint.d_params) if n is not None]
    inputs = [*joint.x, *joint.state, *joint.params, *joint.grad_y, *joint.grad_state, *constants]
    outputs = [*joint.y, *joint.new_state, *backs]
    functions = {
        kind: emit_function(nodes, inputs, outputs, joint.rows, dtypes={dtype: kind}) for kind in (dtype, torch.float64)
    }
    n_x, n_state, n_params, n_y = len(joint.x), len(joint.state), len(joint.params), len(joint.y)
    values = [joint.constants[str(n.target)] for n in constants]
    # Every state has a direction, also one that no gradient reaches; x and params only where a gradient does.
    with_back = [*(n is not None for n in joint.d_x if n is not None), *(n is not None for n in joint.d_state)]
    with_back += [True for n in joint.d_params if n is not None]

    moved = _depend_on(backs, {*joint.grad_y, *joint.grad_state})

    def step(x: Any, state: Any, *params: Any) -> Any:
        rows = state[0].shape[0]
        along = [*x[n_x:], *state[n_state:], *params[n_params:]]
        with torch.enable_grad():
            shapes = [
                [rows if size == joint.rows else size for size in n.meta["val"].shape]
                for n in (*joint.y, *joint.new_state)
            ]
            seeds = [torch.zeros(shape, dtype=x[0].dtype).requires_grad_() for shape in shapes]
            kind = x[0].dtype
            fixed = [value.to(kind) if value.dtype is dtype else value for value in values]
            out = functions[kind](rows, [*x[:n_x], *state[:n_state], *params[:n_params], *seeds, *fixed])
            pairs = list(zip(out[n_y + n_state :], [v for v, there in zip(along, with_back) if there]))
            pairs = [(d, v) for (d, v), reached in zip(pairs, moved) if reached]
            changes = torch.autograd.grad(
                [d for d, _ in pairs], seeds, [v for _, v in pairs], create_graph=True, allow_unused=True
            )
        change = [torch.zeros_like(seed) if c is None else c for seed, c in zip(seeds, changes)]
        return (*out[:n_y], *change[:n_y]), (*out[n_y : n_y + n_state], *change[n_y:])

    return step


def _depend_on(nodes: list[fx.Node], sources: set[fx.Node]) -> list[bool]:
    reached = set(sources)
    for node in nodes[0].graph.nodes if nodes else ():
        if any(operand in reached for operand in node.all_input_nodes):
            reached.add(node)
    return [node in reached for node in nodes]


def _agrees(engine: Engine, plan: Plan, run: Run, replay: Replay, parts: Parts) -> bool:
    """Compare with the user's own loop, differentiated twice, on random numbers and a few steps."""
    generator = torch.Generator().manual_seed(20_114)

    def draw(like: Tensor, *shape: int) -> Tensor:
        if not like.dtype.is_floating_point:
            return like.detach()[: shape[0]] if shape else like.detach()
        size = (*shape, *like.shape[1:]) if shape else tuple(like.shape)
        return torch.randn(size, generator=generator, dtype=torch.float64).to(like.dtype)

    x, state = [draw(t, _STEPS) for t in parts.x], [draw(t) for t in parts.state]
    params = [t.detach().clone() for t in parts.params]
    leaves = [t.requires_grad_(t.dtype.is_floating_point) for t in (*x, *state, *params)]
    n_x, n_state = len(x), len(state)
    present = engine.gradients_present
    with torch.enable_grad():
        wanted = [leaf for leaf, there in zip(leaves, present) if there]
        y, last = replay(leaves[:n_x], leaves[n_x : n_x + n_state], leaves[n_x + n_state :])
        outputs = [*y, *last]
        arriving = [draw(out.detach()).requires_grad_() for out in outputs]
        pairs = [(out, g) for out, g in zip(outputs, arriving) if out.requires_grad]
        loop = torch.autograd.grad(
            [out for out, _ in pairs], wanted, [g for _, g in pairs], create_graph=True, allow_unused=True
        )
        along = [draw(leaf.detach()) for leaf in wanted]
        total = sum(((g * v).sum() for g, v in zip(loop, along) if g is not None), torch.zeros(()))
        if not total.requires_grad:
            return False
        theirs = torch.autograd.grad(total, [*wanted, *arriving], allow_unused=True)

    class Given:
        pass

    ctx: Any = Given()
    ctx.engine, ctx.plan, ctx.run, ctx.n_x, ctx.n_state = engine, plan, run, n_x, n_state
    with torch.enable_grad():
        tensors = [*leaves, *arriving]
        new_y, new_last = _changes(ctx, tensors, along)
        pairs = [(out, g) for out, g in zip((*new_y, *new_last), arriving) if out.requires_grad]
        ours = torch.autograd.grad([o for o, _ in pairs], wanted, [g for _, g in pairs], allow_unused=True)
    found = [*ours, *(out.detach() for out in (*new_y, *new_last))]
    size = max((float(t.abs().max()) for t in theirs if t is not None and t.numel()), default=0.0)
    return all(_close(a, b, size) for a, b in zip(found, theirs))


def _close(a: Tensor | None, b: Tensor | None, size: float) -> bool:
    if a is None or b is None:
        other = a if b is None else b
        return other is None or float(other.abs().max()) <= 1e-4 * size
    return bool(((a - b).abs().max() <= _TOLERANCE * b.abs().max() + 1e-4 * size).item())
