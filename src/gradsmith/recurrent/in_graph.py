"""Inside torch.compile: a planned step is one operator of the graph, so that `fullgraph=True` works.

torch.compile cannot trace planning, but it can call `_prepare` while it traces and take what it returns for a constant.
The plan is named in the graph by a number made from its content, because compiled graphs are cached on disk. Python
values of the cell (a leak, a slope) are baked in; the operator looks at them at every call and refuses to run with others.
The batch size is free; a new one is checked when it first comes.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from . import store
from .engine import Engine, Kept
from .ladder import Call, make_call
from .plan import Plan
from .run import register, unpack
from .span import Span
from .structure import flatten
from .surroundings import look_around

_Like = tuple[tuple[int, ...], torch.dtype, bool]


@dataclass
class _Compiled:
    """What the operator needs at run time: the engine, and the step whose Python values it was planned for."""

    plan: Plan
    step: Any
    key: Any
    name: str
    at: Callable[[int], Plan]

    @property
    def engine(self) -> Engine:
        assert self.plan.engine is not None
        return self.plan.engine


_ANY_BATCH = 3
_compiled: dict[int, _Compiled] = {}
_library = torch.library.Library("gradsmith", "FRAGMENT")
_library.define("recurrent_scan(int plan, Tensor[] x, Tensor[] state, Tensor[] params, bool keep) -> Tensor[]")


def scan_in_graph(
    cell: nn.Module, step_of: Callable[[nn.Module], Any], x: Tensor, state: Any, reverse: bool, backend: str
) -> Any:
    """(y, last state) as traced by torch.compile; or a sentence that says why it cannot be in the graph."""
    single = isinstance(state, Tensor)
    if not isinstance(x, Tensor) or not (single or isinstance(state, tuple)):
        return "its input or state is a nested structure"
    start = [state] if single else list(state)
    if x.dim() < 2 or any(leaf.dim() < 1 for leaf in start):
        return "its input or state has no batch dimension"
    like = [(tuple(leaf.shape[1:]), leaf.dtype, leaf.requires_grad) for leaf in start]
    # Reading every `training` makes torch.compile watch them: model.eval() compiles again.
    modes = [module.training for module in cell.modules()]
    found = _prepare(
        cell, step_of, (tuple(x.shape[2:]), x.dtype, x.requires_grad), like, single, torch.is_grad_enabled(), modes,
        torch.is_autocast_enabled("cpu"), backend,
    )  # fmt: skip
    if isinstance(found, str):
        return found
    number, names, train, dtype, y_dtype, state_dtypes = found
    own = dict([*cell.named_parameters(), *cell.named_buffers()])
    params = [own[name].to(dtype) for name in names]
    x = x.flip(0) if reverse else x
    outputs = torch.ops.gradsmith.recurrent_scan(
        number, [x.to(dtype)], [leaf.to(dtype) for leaf in start], params, train
    )
    y = outputs[0].to(y_dtype)
    last = tuple(leaf.to(kind) for leaf, kind in zip(outputs[1 : 1 + len(start)], state_dtypes))
    return (y.flip(0) if reverse else y), (last[0] if single else last)


def _prepare(
    cell: nn.Module, step_of: Any, x: _Like, state: list[_Like], single: bool, grad: bool, modes: list[bool],
    autocast: bool, backend: str,
) -> Any:  # fmt: skip
    """Plan with made-up inputs of the right shapes; the parameters are the real ones. Runs while torch.compile traces."""
    from .scan import plan_for

    if autocast:
        return "autocast is on"
    floats = [kind for _, kind, _ in (x, *state)]
    if not all(kind.is_floating_point for kind in floats):
        return "its input or state are whole numbers"
    step = step_of(cell)
    call = _call(step, x, state, single, _ANY_BATCH, grad)
    plan = plan_for(call, backend)
    if plan.backend != "c" or not isinstance(plan.engine, Engine):
        return "; ".join(plan.reasons) or f"it runs on the backend {plan.backend!r}"
    if len(plan.engine.parts.joint.y) != 1:
        return "its output is a nested structure"
    known = {id(tensor): name for name, tensor in [*cell.named_parameters(), *cell.named_buffers()]}
    used = [call.around.tensors[i] for i in plan.seen_used]
    if any(id(tensor) not in known for tensor in used):
        return "it reads a tensor that is neither a parameter nor a buffer of the cell"
    number = _number(plan, store.address(call, backend) or hash(call.around.key))
    register(plan.engine, number)

    def at(batch: int) -> Plan:
        return plan_for(_call(step, x, state, single, batch, grad), backend)

    _compiled[number] = _Compiled(plan, step, call.around.key, type(cell).__name__, at)
    names = tuple(known[id(tensor)] for tensor in used)
    return number, names, call.train, plan.dtype, plan.y_dtypes[0], plan.state_dtypes


def _call(step: Any, x: _Like, state: list[_Like], single: bool, batch: int, grad: bool) -> Call:
    with torch.set_grad_enabled(grad):
        sequence = torch.zeros(2, batch, *x[0], dtype=x[1]).requires_grad_(x[2])
        start = tuple(torch.zeros(batch, *shape, dtype=kind).requires_grad_(wanted) for shape, kind, wanted in state)
        given = flatten(sequence, "x", "scan"), flatten(start[0] if single else start, "state", "scan")
        return make_call(step, *given, flatten((), "params", "scan"))


_prepare._dynamo_marked_constant = True  # type: ignore[attr-defined]  # torch.compiler.assume_constant_result, without its import


def _number(plan: Plan, key: object) -> int:
    assert plan.engine is not None
    content = f"{plan.engine.emitted.source}\0{plan.engine.parts.joint.graph}\0{key}"
    return int.from_bytes(hashlib.sha256(content.encode()).digest()[:7], "big")


def _arranged(engine: Engine, flat: list[Tensor], span: Span, keep: bool) -> list[Tensor]:
    """y, last state, and what backward reads: each in memory of its own, as an operator's results must be."""
    kept = unpack(engine, flat)
    y, last = engine.results(kept, span)
    if not keep:
        return [*y, *(leaf.clone() for leaf in last)]
    read = [tensor for tensor, wanted in zip(flat, engine.read_in_backward) if wanted]
    return [*(leaf.clone() for leaf in y), *(leaf.clone() for leaf in last), *read]


def _scan(plan: int, x: list[Tensor], state: list[Tensor], params: list[Tensor], keep: bool) -> list[Tensor]:
    own = _compiled[plan]
    if look_around(own.step).key != own.key:
        raise RuntimeError(
            f"{own.name} has changed since torch.compile traced it (a Python value it reads, such as an attribute);"
            f" call torch.compiler.reset() and compile it again."
        )
    _check_batch(own, x[0].shape[1])
    kept: Kept = own.engine.forward(x, state, params, keep)
    return _arranged(own.engine, [*kept.states, *kept.outputs, *kept.saved], Span.of(x, state, None), keep)


def _check_batch(own: _Compiled, batch: int) -> None:
    """Inside an operator autograd is switched off, for this thread; checking a plan needs it."""
    if batch in own.plan.checked:
        return
    found: list[Plan] = []
    worker = threading.Thread(target=lambda: found.append(own.at(batch)))
    worker.start()
    worker.join()
    if not found or found[0].engine is not own.plan.engine:
        why = "; ".join(found[0].reasons) if found else "it could not be checked"
        raise RuntimeError(f"{own.name} cannot run compiled at batch {batch}: {why}.")


def _scan_fake(plan: int, x: list[Tensor], state: list[Tensor], params: list[Tensor], keep: bool) -> list[Tensor]:
    engine = _compiled[plan].engine
    flat = engine.forward_shapes(x, state, keep)
    y = [engine.empty_course(node, x[0].shape[:2]) for node in engine.parts.joint.y]
    read = [tensor for tensor, wanted in zip(flat, engine.read_in_backward) if wanted] if keep else []
    return [*y, *(torch.empty_like(leaf) for leaf in state), *read]


def _setup(ctx: Any, inputs: Any, output: list[Tensor]) -> None:
    ctx.plan, x, state, params, _ = inputs
    engine = _compiled[ctx.plan].engine
    ctx.counts = len(x), len(state), len(params), len(engine.parts.joint.y)
    kept = output[ctx.counts[3] + len(state) :]
    ctx.mark_non_differentiable(*kept)
    ctx.save_for_backward(*x, *state, *params, *kept)


def _backward(ctx: Any, gradients: list[Tensor]) -> Any:
    engine = _compiled[ctx.plan].engine
    n_x, n_state, n_params, n_y = ctx.counts
    saved = list(ctx.saved_tensors)
    n = n_x + n_state + n_params
    x, state, params, read = saved[:n_x], saved[n_x : n_x + n_state], saved[n_x + n_state : n], iter(saved[n:])
    kept = [next(read) if wanted else x[0].new_empty(0) for wanted in engine.read_in_backward]
    results = iter(
        torch.ops.gradsmith.recurrent_backward(
            ctx.plan, x, state, params, kept, gradients[:n_y], gradients[n_y : n_y + n_state]
        )
    )
    found = [next(results) if present else None for present in engine.gradients_present]
    return None, found[:n_x], found[n_x : n_x + n_state], found[n_x + n_state :], None


_library.impl("recurrent_scan", _scan, "CompositeExplicitAutograd")
torch.library.register_fake("gradsmith::recurrent_scan", _scan_fake, lib=_library)
torch.library.register_autograd("gradsmith::recurrent_scan", _backward, setup_context=_setup, lib=_library)
