"""`scan`: run a step over time, as fast as the step allows."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any, cast

import torch
from torch.utils import _pytree as pytree
from torch.utils.checkpoint import checkpoint

from gradsmith.native.outside_compile import leave_graph, untraced
from gradsmith.native.refused import Refused

from . import store
from .fallback import Step
from .in_graph import scan_in_graph
from .ladder import Call, choose, execute, make_call, verify
from .library import interference
from .plan import Plan
from .structure import Flat, describe, flatten
from .telling import tell_of_loop
from .undo import undone

_plans: dict[Any, Plan] = {}
_families: Counter[Any] = Counter()
_planning = threading.RLock()
MOST_VERSIONS = 16
BACKENDS = ("auto", "c", "torch", "loop")
Note = Callable[[Plan], object]


def scan(
    step: Step,
    x: Any,
    state: Any,
    params: Any = (),
    *,
    reverse: bool = False,
    checkpoint_every: int | None = None,
    backend: str = "auto",
) -> tuple[Any, Any]:
    """Run `y_t, state = step(x_t, state, *params)` over time and return `(y, last_state)`.

    Time is the first dimension of every tensor in `x` and `y`, the batch usually the second. `state`, `x` and `y` may
    be any nesting of tuples, lists and dicts of tensors. Tensors that `step` reaches by closure get gradients too.
    `checkpoint_every=k` keeps the state of every k-th step only and recomputes the rest in backward.

    >>> import torch
    >>> weight = torch.randn(8, 8, requires_grad=True)
    >>> def step(x_t, h, weight):
    ...     h = torch.tanh(x_t + h @ weight)
    ...     return h, h
    >>> y, last = scan(step, torch.randn(20, 4, 8), torch.zeros(4, 8), (weight,))
    >>> y.shape, last.shape
    (torch.Size([20, 4, 8]), torch.Size([4, 8]))
    """
    if torch.compiler.is_compiling():
        options = {"reverse": reverse, "checkpoint_every": checkpoint_every, "backend": backend}
        reason = "only a module can be the step of a graph"
        if isinstance(step, torch.nn.Module) and params == () and checkpoint_every is None:
            found = scan_in_graph(step, _itself, x, state, reverse, backend)
            if not isinstance(found, str):
                return cast(tuple[Any, Any], found)
            reason = found
        return cast(tuple[Any, Any], leave_graph(reason, scan, step, x, state, params, **options))
    return scan_noting(
        lambda chosen: tell_of_loop(chosen, step, backend), step, x, state, params, reverse, checkpoint_every, backend
    )


def scan_noting(
    note: Note, step: Step, x: Any, state: Any, params: Any, reverse: bool, checkpoint_every: int | None, backend: str
) -> tuple[Any, Any]:
    """`scan` outside torch.compile; `note` is told the plan."""
    found = untraced(_scan, note, step, x, state, params, reverse, checkpoint_every, backend)
    return cast(tuple[Any, Any], found)


def _scan(
    note: Note, step: Step, x: Any, state: Any, params: Any, reverse: bool, checkpoint_every: int | None, backend: str
) -> tuple[Any, Any]:
    if not callable(step):
        raise TypeError(f"scan: step must be a function or a module, not {type(step).__name__}.")
    flat_x = check_x(x, "scan")
    params = params if isinstance(params, tuple | list) else (params,)
    if backend not in BACKENDS:
        raise ValueError(f"scan: backend must be one of {', '.join(BACKENDS)}, not {backend!r}.")
    flatten(state, "state", "scan")
    flatten(tuple(params), "params", "scan")
    if reverse:
        flat_x = Flat(tuple(leaf.flip(0) for leaf in flat_x.leaves), flat_x.names, flat_x.spec)
    if checkpoint_every is not None:
        y, last = _in_segments(note, step, flat_x, state, tuple(params), checkpoint_every, backend)
    else:
        y, last = run(note, step, flat_x, state, tuple(params), backend)
    return (pytree.tree_map(lambda leaf: leaf.flip(0), y) if reverse else y), last


def _itself(cell: torch.nn.Module) -> Step:
    return cell


def check_x(x: Any, who: str) -> Flat:
    """x must have time in front, the same number of steps everywhere, and at least one."""
    flat = flatten(x, "x", who)
    if not flat.leaves:
        raise ValueError(f"{who}: x holds no tensor; give at least one with time as its first dimension.")
    for name, leaf in zip(flat.names, flat.leaves):
        if leaf.dim() == 0:
            raise ValueError(f"{who}: {name} has no time dimension; its shape is (), expected (time, batch, ...).")
        if leaf.shape[0] != flat.leaves[0].shape[0]:
            raise ValueError(
                f"{who}: {flat.names[0]} has {flat.leaves[0].shape[0]} time steps but {name} has {leaf.shape[0]};"
                f" all parts of x must have the same length."
            )
    if flat.leaves[0].shape[0] == 0:
        raise ValueError(
            f"{who}: {flat.names[0]} has no time steps (shape {describe(flat.leaves[0])}); T must be at least 1."
        )
    return flat


def run(note: Note, step: Step, x: Flat, state: Any, params: tuple[Any, ...], backend: str) -> tuple[Any, Any]:
    """Run on the first rung of the ladder that fits."""
    call = make_call(step, x, flatten(state, "state", "scan"), flatten(params, "params", "scan"))
    chosen = plan_for(call, backend)
    note(chosen)
    return execute(chosen, call)


def plan(step: Step, x: Any, state: Any, params: Any = (), *, backend: str = "auto") -> Plan:
    """How `scan` with these arguments will run, and why. Print it.

    >>> import torch
    >>> print(plan(lambda x, h: (x + h, x + h), torch.ones(5, 2, 3), torch.zeros(2, 3)).backend in ("c", "torch"))
    True
    """
    params = params if isinstance(params, tuple | list) else (params,)
    flat = check_x(x, "plan")
    call = make_call(step, flat, flatten(state, "state", "plan"), flatten(tuple(params), "params", "plan"))
    return plan_for(call, backend)


def plan_for(call: Call, backend: str) -> Plan:
    """The plan for a call, made at its first occurrence and kept for as long as the process lives."""
    if torch._C._are_functorch_transforms_active():
        return Plan("loop", ["c: inside a functorch transform (vmap, grad, jvp) the step itself is transformed"])
    unread = interference() or call.around.unread
    if unread is not None:
        return _unplanned(unread)
    key = call.key(backend)
    plan = _plans.get(key)
    if plan is not None and (plan.engine is None or call.batch in plan.checked):
        return plan
    # Tracing patches nn.Module for the whole process: one thread at a time. What planning saves for its own backward
    # is nobody else's business: a surrounding checkpoint would count it and miss it when it recomputes.
    with _planning, undone(call.step), torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        plan = _plans.get(key)
        name = store.address(call, backend) if plan is None or plan.backend == "c" else None
        if plan is None:
            plan = _plans[key] = _from_disk(call, name) or _first_plan(call, backend)
        known = plan.from_disk and call.batch in plan.checked
        try:
            verify(plan, call)
        except Refused as refusal:
            return Plan("loop", [f"{plan.backend} at batch {call.batch}: {refusal}"])
        if name is not None and plan.backend == "c" and not known:
            store.keep(plan, name)
    return plan


def _unplanned(reason: str) -> Plan:
    """What a step sees may change without a trace in the key, so no plan may be kept; the loop is right, whatever it sees."""
    return Plan("loop", [f"planned: {reason}", "so a plan could become wrong without notice"])


def _from_disk(call: Call, name: str | None) -> Plan | None:
    started = time.perf_counter()
    plan = None if name is None else store.find(call, name)
    if plan is not None:
        plan.seconds = time.perf_counter() - started
    return plan


def _first_plan(call: Call, backend: str) -> Plan:
    """A step that differs in some Python value at every call (an annealed constant) would be compiled at every call."""
    family = call.family()
    _families[family] += 1
    if _families[family] > MOST_VERSIONS:
        reason = f"a Python value it sees has changed {MOST_VERSIONS} times; pass it as a tensor in params"
        return Plan("loop", [f"{backend}: {reason}"])
    return choose(call, backend)


def _in_segments(
    note: Note, step: Step, x: Flat, state: Any, params: tuple[Any, ...], every: int, backend: str
) -> tuple[Any, Any]:
    if every < 1:
        raise ValueError(f"scan: checkpoint_every must be at least 1, not {every}.")
    pieces: list[Any] = []
    segment: Callable[..., Any] = run
    for leaves in zip(*(leaf.split(every) for leaf in x.leaves)):
        part = Flat(tuple(leaves), x.names, x.spec)

        def again(*leaves: torch.Tensor, state: Any = state, part: Flat = part) -> Any:
            return segment(note, step, Flat(leaves, part.names, part.spec), state, params, backend)

        if torch.is_grad_enabled():
            y, state = checkpoint(again, *part.leaves, use_reentrant=False, state=state, part=part)
        else:
            y, state = again(*part.leaves)
        pieces.append(y)
    return pytree.tree_map(lambda *parts: torch.cat(parts), *pieces), state
