"""`scan`: run a step over time, as fast as the step allows."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, cast

import torch
from torch.nn.utils.rnn import PackedSequence
from torch.utils import _pytree as pytree
from torch.utils.checkpoint import checkpoint

from gradsmith.native.outside_compile import leave_graph, untraced
from gradsmith.native.refused import Refused

from . import store
from .fallback import Step
from .in_graph import scan_in_graph
from .ladder import Call, choose, execute, make_call, verify, verify_uneven
from .library import interference
from .masking import check_lengths, mask_steps
from .packing import Packing
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
Part = Callable[[int, tuple[torch.Tensor, ...], Any], Any]


def scan(
    step: Step,
    x: Any,
    state: Any,
    params: Any = (),
    *,
    reverse: bool = False,
    checkpoint_every: int | None = None,
    backend: str = "auto",
    lengths: Any = None,
) -> tuple[Any, Any]:
    """Run `y_t, state = step(x_t, state, *params)` over time and return `(y, last_state)`.

    Time is the first dimension of every tensor in `x` and `y`, the batch usually the second. `state`, `x` and `y` may
    be any nesting of tuples, lists and dicts of tensors. Tensors that `step` reaches by closure get gradients too.
    `checkpoint_every=k` keeps the state of every k-th step only and recomputes the rest in backward. `lengths` has the number
    of time steps of each sequence of the batch: `y` is zero behind the end of a sequence, and `last_state` is the state at its
    end. `x` may also be a PackedSequence; then `y` is one.

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
        options = {"reverse": reverse, "checkpoint_every": checkpoint_every, "backend": backend, "lengths": lengths}
        reason = "only a module can be the step of a graph"
        if lengths is not None or isinstance(x, PackedSequence):
            reason = "the lengths of sequences are only known while it runs"
        elif isinstance(step, torch.nn.Module) and params == () and checkpoint_every is None:
            found = scan_in_graph(step, _itself, x, state, reverse, backend)
            if not isinstance(found, str):
                return cast(tuple[Any, Any], found)
            reason = found
        return cast(tuple[Any, Any], leave_graph(reason, scan, step, x, state, params, **options))

    def note(chosen: Plan) -> None:
        tell_of_loop(chosen, step, backend)

    if isinstance(x, PackedSequence):
        if lengths is not None:
            raise ValueError("scan: a PackedSequence has its lengths; give no others.")
        packing = Packing.of_packed(x)
        y, last = scan_rows(note, packing, step, x.data, state, params, reverse, checkpoint_every, backend)
        return pytree.tree_map(lambda rows: repack(rows, x), y), last
    if lengths is None:
        return scan_noting(note, step, x, state, params, reverse, checkpoint_every, backend)
    leaves = check_x(x, "scan").leaves
    if min(leaf.dim() for leaf in leaves) < 2:
        raise ValueError("scan: with lengths every part of x must have the shape (time, batch, ...).")
    steps, batch = leaves[0].shape[:2]
    packing = Packing.of_lengths(check_lengths(lengths, steps, batch, True, "scan"))
    rows = packing.rows_of(x)
    y, last = scan_rows(note, packing, step, rows, state, params, reverse, checkpoint_every, backend)
    return packing.padded(y, steps), last


def repack(rows: torch.Tensor, like: PackedSequence) -> PackedSequence:
    return PackedSequence(rows, like.batch_sizes, like.sorted_indices, like.unsorted_indices)


def scan_rows(
    note: Note, packing: Packing, step: Step, x: Any, state: Any, params: Any, reverse: bool, checkpoint_every: int | None,
    backend: str,
) -> tuple[Any, Any]:  # fmt: skip
    """`scan_noting` for sequences of different lengths; x and y are their rows, `state` is in the caller's order."""
    found = untraced(_scan_rows, note, packing, step, x, state, params, reverse, checkpoint_every, backend)
    return cast(tuple[Any, Any], found)


def scan_noting(
    note: Note, step: Step, x: Any, state: Any, params: Any, reverse: bool, checkpoint_every: int | None, backend: str
) -> tuple[Any, Any]:
    """`scan` outside torch.compile; `note` is told the plan."""
    found = untraced(_scan, note, step, x, state, params, reverse, checkpoint_every, backend)
    return cast(tuple[Any, Any], found)


def _scan(
    note: Note, step: Step, x: Any, state: Any, params: Any, reverse: bool, checkpoint_every: int | None, backend: str
) -> tuple[Any, Any]:
    flat_x = check_x(x, "scan")
    params = _check_rest(step, state, params, backend)
    if reverse:
        flat_x = Flat(tuple(leaf.flip(0) for leaf in flat_x.leaves), flat_x.names, flat_x.spec)
    if checkpoint_every is not None:
        _check_every(checkpoint_every)

        def part(_: int, leaves: tuple[torch.Tensor, ...], state: Any) -> Any:
            return run(note, step, Flat(leaves, flat_x.names, flat_x.spec), state, params, backend)

        y, last = _in_segments(part, list(zip(*(leaf.split(checkpoint_every) for leaf in flat_x.leaves))), state)
    else:
        y, last = run(note, step, flat_x, state, params, backend)
    return (pytree.tree_map(lambda leaf: leaf.flip(0), y) if reverse else y), last


def _scan_rows(
    note: Note, packing: Packing, step: Step, x: Any, state: Any, params: Any, reverse: bool, checkpoint_every: int | None,
    backend: str,
) -> tuple[Any, Any]:  # fmt: skip
    """By loops that leave rows out where they end; else over padded sequences, with masks."""
    params = _check_rest(step, state, params, backend)
    rows, batch = flatten(x, "x", "scan"), packing.span.batch
    first = Flat(tuple(leaf[:batch].unsqueeze(0) for leaf in rows.leaves), rows.names, rows.spec)
    start, given = packing.sorted(state), flatten(params, "params", "scan")
    call = make_call(step, first, flatten(start, "state", "scan"), given)
    chosen = plan_for(call, backend)
    if chosen.backend != "c" or not _fits_uneven(chosen, call, backend):
        step, inputs = mask_steps(step, packing.padded(x, packing.span.steps), packing.lengths)
        y, last = _scan(note, step, inputs, state, params, reverse, checkpoint_every, backend)
        return packing.rows_of(y), last
    note(chosen)
    leaves = packing.backwards(rows.leaves) if reverse else rows.leaves
    every = _check_every(checkpoint_every) or packing.span.steps
    cuts = [*range(0, packing.span.steps, every), packing.span.steps]

    def part(number: int, leaves: tuple[torch.Tensor, ...], state: Any) -> Any:
        uneven = packing.first[cuts[number] : cuts[number + 1] + 1]
        own = Flat(leaves, rows.names, rows.spec)
        segment = replace(call, x=own, state=flatten(state, "state", "scan"), uneven=uneven - uneven[0])
        return execute(chosen, segment)

    if checkpoint_every is None:
        y, last = part(0, leaves, start)
    else:
        sizes = packing.first[cuts].diff().tolist()
        y, last = _in_segments(part, list(zip(*(leaf.split(sizes) for leaf in leaves))), start)
    return (packing.backwards(y) if reverse else y), packing.unsorted(last)


def _fits_uneven(plan: Plan, call: Call, backend: str) -> bool:
    if call.batch not in plan.uneven:
        with _planning, undone(call.step), torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
            name = store.address(call, backend)
            if verify_uneven(plan, call) and name is not None:
                store.keep(plan, name)
    return plan.uneven[call.batch]


def _check_every(every: int | None) -> int | None:
    if every is not None and every < 1:
        raise ValueError(f"scan: checkpoint_every must be at least 1, not {every}.")
    return every


def _check_rest(step: Step, state: Any, params: Any, backend: str) -> tuple[Any, ...]:
    """The arguments of scan besides x must be what they should be; `params` as a tuple."""
    if not callable(step):
        raise TypeError(f"scan: step must be a function or a module, not {type(step).__name__}.")
    if backend not in BACKENDS:
        raise ValueError(f"scan: backend must be one of {', '.join(BACKENDS)}, not {backend!r}.")
    flatten(state, "state", "scan")
    given = tuple(params) if isinstance(params, tuple | list) else (params,)
    flatten(given, "params", "scan")
    return given


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


def _in_segments(part: Part, x: Sequence[tuple[torch.Tensor, ...]], state: Any) -> tuple[Any, Any]:
    """Run `part(number, x, state)` on all segments of x; each keeps its initial state alone, and is run again in backward."""
    pieces: list[Any] = []
    for number, leaves in enumerate(x):

        def again(*leaves: torch.Tensor, state: Any = state, number: int = number) -> Any:
            return part(number, leaves, state)

        if torch.is_grad_enabled():
            y, state = checkpoint(again, *leaves, use_reentrant=False, state=state, number=number)
        else:
            y, state = again(*leaves)
        pieces.append(y)
    return pytree.tree_map(lambda *parts: torch.cat(parts), *pieces), state
