"""The fallback ladder: C, then torch operations, then the loop. The first rung that agrees with the loop is taken."""

from __future__ import annotations

import dataclasses
import gc
import importlib
import itertools
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from gradsmith.native.refused import Refused

from .capture import Joint, Leaf, OutOfReach, capture, explain, quietly
from .emit_c import emit
from .emit_rows import has_c_form
from .engine import Engine
from .fallback import Step, live_loop, unbind_loop
from .plan import Plan
from .run import register, run_engine
from .saving import choose_saved
from .split import split
from .standing_in import PLACING, standing_in
from .structure import Flat, pieces_of
from .surroundings import Surroundings, look_around
from .trust import LENGTHS, check
from .twice import Replay
from .weaving import weave_products

_LOW = (torch.bfloat16, torch.float16)


@dataclass
class Call:
    """One call of scan, flattened."""

    step: Step
    x: Flat
    state: Flat
    params: Flat
    around: Surroundings
    train: bool
    autocast: torch.dtype | None
    placed: bool = False
    """Stand-ins for what the step reaches by closure are put where it finds them."""
    uneven: Tensor | None = None
    """For sequences of different lengths: the row of x at which each step begins (see span.py)."""

    @property
    def all_params(self) -> list[Tensor]:
        return [*self.params.leaves, *self.around.tensors]

    @property
    def batch(self) -> int:
        return self.state.leaves[0].shape[0] if self.state.leaves and self.state.leaves[0].dim() else 0

    def family(self) -> tuple[Any, ...]:
        """Calls that differ only in the Python values the step can see."""
        target: Any = self.step
        code = getattr(target, "__code__", None) or getattr(target, "__func__", None) or type(target)
        leaves = (*self.x.leaves, *self.state.leaves, *self.all_params)
        return (code, self.train, self.autocast, tuple((tuple(t.shape[1:]), t.dtype, t.requires_grad) for t in leaves))

    def key(self, backend: str) -> tuple[Any, ...]:
        b = self.batch

        def mark(leaf: Tensor, skip: int) -> tuple[Any, ...]:
            shape = tuple(-1 if d == 0 and size == b else size for d, size in enumerate(leaf.shape[skip:]))
            return (shape, leaf.dtype, leaf.requires_grad and self.train, leaf.device)

        leaves = [mark(leaf, 1) for leaf in self.x.leaves]
        leaves += [mark(leaf, 0) for leaf in (*self.state.leaves, *self.all_params)]
        return (
            self.around.key,
            self.around.handed,
            tuple(leaves),
            backend,
            self.train,
            self.autocast,
            _torch_settings(),
        )


def _torch_settings() -> tuple[Any, ...]:
    return (
        torch.get_default_dtype(), torch.are_deterministic_algorithms_enabled(), torch.get_float32_matmul_precision(),
    )  # fmt: skip


def make_call(step: Step, x: Flat, state: Flat, params: Flat) -> Call:
    with PLACING:
        around = look_around(step, tuple(pieces_of(given.spec) for given in (x, state, params)))
    for flat in (x, state, params):
        for name, leaf in zip(flat.names, flat.leaves):
            if leaf.__dict__:
                around.unread = f"{name} has attributes of its own ({', '.join(leaf.__dict__)})"
    explicit = {id(leaf) for leaf in params.leaves}
    fresh = [i for i, t in enumerate(around.tensors) if id(t) not in explicit]
    around.names = [around.names[i] for i in fresh]
    around.tensors = [around.tensors[i] for i in fresh]
    leaves = (*x.leaves, *state.leaves, *params.leaves, *around.tensors)
    train = torch.is_grad_enabled() and any(leaf.requires_grad for leaf in leaves)
    autocast = torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else None
    return Call(step, x, state, params, around, train, autocast)


def choose(call: Call, backend: str) -> Plan:
    """Plan a call; never fails, because the loop is always there."""
    started = time.perf_counter()
    reasons: list[str] = []
    for rung in [backend] if backend != "auto" else ["c", "torch"]:
        if rung == "loop":
            break
        try:
            plan = _plan(call, rung)
            verify(plan, call)
        except Refused as refusal:
            reasons.append(f"{rung}: {refusal}")
            continue
        plan.reasons = reasons
        plan.held = list(call.around.held)
        plan.seconds = time.perf_counter() - started
        return plan
    return Plan("loop", reasons, held=list(call.around.held))


def _plan(call: Call, rung: str) -> Plan:
    dtype = _compute_dtype(call)
    if rung == "c":
        _refuse_devices(call)
    first: Refused | None = None
    for rowwise in _guesses(call):
        try:
            return _plan_reaching(call, rung, dtype, rowwise)
        except Refused as refusal:
            first = first or refusal
    raise first or Refused("there is no state")


def _plan_reaching(call: Call, rung: str, dtype: torch.dtype, rowwise: tuple[bool, ...]) -> Plan:
    """A Function that is handed a parameter of the cell sees a stand-in only where the parameter is found."""
    try:
        return _plan_with(call, rung, dtype, rowwise)
    except OutOfReach:
        if call.placed or not call.around.tensors:
            raise
    call.placed = True
    return _plan_with(call, rung, dtype, rowwise)


def _refuse_devices(call: Call) -> None:
    for leaf in (*call.x.leaves, *call.state.leaves, *call.all_params):
        if leaf.device.type != "cpu":
            raise Refused(f"the tensors are on {leaf.device}; C runs on the CPU")
        if type(leaf) not in (Tensor, torch.nn.Parameter, torch.nn.Buffer) or leaf.layout is not torch.strided:
            raise Refused(f"{type(leaf).__name__} is not a plain dense tensor")


def _compute_dtype(call: Call) -> torch.dtype:
    """float64 if everything is float64, else float32; bfloat16 and float16 are computed in float32."""
    leaves = (*call.x.leaves, *call.state.leaves, *call.all_params)
    kinds = {leaf.dtype for leaf in leaves if leaf.dtype.is_floating_point}
    if any(leaf.dtype.is_complex for leaf in leaves):
        raise Refused("the step computes with complex numbers")
    if (
        torch.float64 in kinds
        and len({leaf.dtype for leaf in (*call.x.leaves, *call.state.leaves) if leaf.dtype.is_floating_point}) > 1
    ):
        raise Refused("x and state have different dtypes")
    return torch.float64 if torch.float64 in kinds else torch.float32


def _guesses(call: Call) -> Iterator[tuple[bool, ...]]:
    """Which parameters have a row per batch element (a memory to attend to)? None, then 3-D ones, then any that could."""
    params = call.all_params
    batch = call.batch
    tried = set()
    for least in (99, 3, 2):
        guess = tuple(p.dim() >= least and p.shape[0] == batch for p in params)
        if guess not in tried:
            tried.add(guess)
            yield guess


def _leaves(call: Call, dtype: torch.dtype, rowwise: tuple[bool, ...]) -> tuple[list[Leaf], list[Leaf], list[Leaf]]:
    batch = call.batch

    def leaf(name: str, tensor: Tensor, skip: int, rows: bool) -> Leaf:
        shape = tuple(tensor.shape[skip:])
        if rows and (not shape or shape[0] != batch):
            raise Refused(f"{name} has no batch dimension of size {batch} where the state has it")
        kind = dtype if tensor.dtype.is_floating_point else tensor.dtype
        return Leaf(name, shape, kind, rows, tensor.requires_grad and call.train and tensor.dtype.is_floating_point)

    if not call.state.leaves:
        raise Refused("there is no state")
    x = [leaf(n, t, 1, True) for n, t in zip(call.x.names, call.x.leaves)]
    state = [leaf(n, t, 0, True) for n, t in zip(call.state.names, call.state.leaves)]
    names = [*call.params.names, *call.around.names]
    params = [leaf(n, t, 0, rows) for n, t, rows in zip(names, call.all_params, rowwise)]
    return x, state, params


def _plan_with(call: Call, rung: str, dtype: torch.dtype, rowwise: tuple[bool, ...]) -> Plan:
    x, state, params = _leaves(call, dtype, rowwise)
    specs = (call.x.spec, call.state.spec, call.params.spec)
    y_dtypes, state_dtypes = _outcome(call)
    joint = capture(call.step, x, state, params, specs, call.around.tensors, call.placed)
    _refuse_changes(call)
    used = _used_only(joint, len(call.params.leaves))
    parts = split(joint, has_c_form, defer=rung != "c")
    choose_saved(parts, recompute=rung == "c")
    if rung == "c":
        weave_products(parts)
    plan = Plan(
        rung,
        parts=parts,
        rowwise=rowwise,
        seen_used=used,
        dtype=dtype,
        y_dtypes=y_dtypes,
        state_dtypes=state_dtypes,
        placed=call.placed,
    )
    plan.names = {"x": list(call.x.names), "state": list(call.state.names)}
    plan.names["params"] = [*call.params.names, *(call.around.names[i] for i in used)]
    if any(t.dtype in _LOW for t in (*call.x.leaves, *call.state.leaves)) or call.autocast is not None:
        plan.notes.append(f"computed in {dtype}, results returned in {', '.join(sorted({str(d) for d in y_dtypes}))}")
    if rung == "c":
        plan.engine = Engine(parts, emit(parts, dtype), dtype)
    else:
        from .torch_loop import TorchEngine

        plan.engine = TorchEngine(parts, dtype)
    plan.number = register(plan.engine)
    return plan


def _used_only(joint: Joint, explicit: int) -> tuple[int, ...]:
    """Drop the tensors the step could see but does not use; their gradients are nothing, not zero."""
    results = {*joint.y, *joint.new_state}
    used = [i for i, node in enumerate(joint.params[explicit:]) if node.users or node in results]
    keep = [*range(explicit), *(explicit + i for i in used)]
    joint.params = [joint.params[i] for i in keep]
    joint.d_params = [joint.d_params[i] for i in keep] if joint.d_params else []
    return tuple(used)


def _outcome(call: Call) -> tuple[tuple[torch.dtype, ...], tuple[torch.dtype, ...]]:
    """The dtypes the loop would return, from two steps without data."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    _load_tracer()
    mode = FakeTensorMode()
    try:
        x: list[Tensor] = [mode.from_tensor(t.detach()[:1].expand(2, *t.shape[1:])) for t in call.x.leaves]
        state: list[Tensor] = [mode.from_tensor(t.detach()) for t in call.state.leaves]
        params: list[Tensor] = [mode.from_tensor(t.detach()) for t in call.all_params]
        with quietly(), mode, torch.no_grad():
            y, last = loop_of(call)(x, state, params)
    except Exception as error:
        raise explain(error) from error
    _refuse_changes(call)
    return tuple(t.dtype for t in y), tuple(t.dtype for t in last)


def _refuse_changes(call: Call) -> None:
    if look_around(call.step).key != call.around.key:
        raise Refused(
            "the step changes what it can see (a counter, a list it appends to, a value it computes once and keeps)"
        )


def _load_tracer() -> None:
    """What FakeTensorMode imports when it is first made: 1.5 s, a fifth less while nothing is collected."""
    if "torch._dynamo" in sys.modules:
        return
    collecting = gc.isenabled()
    gc.disable()
    try:
        importlib.import_module("torch._dynamo.config")
    finally:
        if collecting:
            gc.enable()


def loop_of(call: Call) -> Replay:
    """The unbind loop as a function of flat tensors, with stand-ins for what the step reaches by closure."""
    explicit = len(call.params.leaves)
    seen = list(call.around.tensors)

    def run(x: list[Tensor], state: list[Tensor], params: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        own = pytree.tree_unflatten(list(params[:explicit]), call.params.spec)
        start = pytree.tree_unflatten(list(state), call.state.spec)
        given = Flat(tuple(x), call.x.names, call.x.spec)
        with standing_in(call.step, seen, params[explicit:], call.placed):
            if call.uneven is None:
                y, last = unbind_loop(call.step, given, start, own)
            else:
                y, last = live_loop(call.step, given, start, own, call.uneven.diff().tolist())
        return list(pytree.tree_leaves(y)), list(pytree.tree_leaves(last))

    return run


def _chosen_params(plan: Plan, call: Call) -> list[Tensor]:
    return [*call.params.leaves, *(call.around.tensors[i] for i in plan.seen_used)]


def _narrow(call: Call, plan: Plan) -> Call:
    """The call with only those closure tensors the plan uses; the others keep their own values."""
    around = Surroundings(tensors=[call.around.tensors[i] for i in plan.seen_used])
    return Call(call.step, call.x, call.state, call.params, around, call.train, None, plan.placed, call.uneven)


def verify(plan: Plan, call: Call) -> None:
    """Compare the plan with the loop at this batch size, once."""
    if plan.engine is not None and call.batch not in plan.checked:
        _compare(plan, plan.engine, call)
        plan.checked.add(call.batch)


def verify_uneven(plan: Plan, call: Call) -> bool:
    """Whether the plan also agrees with a loop over sequences of different lengths; compared once at each batch size.

    `call` is one for which the plan was verified.
    """
    if call.batch not in plan.uneven:
        longest = LENGTHS[-1]
        sizes = [sum(length > t for length in _mixed(longest, call.batch)) for t in range(longest)]
        uneven = torch.tensor([0, *itertools.accumulate(sizes)], device="cpu")
        try:
            if type(plan.engine) is not Engine or any(plan.engine.row_params):
                raise Refused("only compiled loops without parameters for single rows can leave rows out")
            _compare(plan, plan.engine, dataclasses.replace(call, uneven=uneven))
            plan.uneven[call.batch] = True
        except Refused:
            plan.uneven[call.batch] = False
    return plan.uneven[call.batch]


def _mixed(longest: int, batch: int) -> list[int]:
    """All lengths, and none: with checkpoints, a sequence may have ended before the steps of a segment."""
    return [longest - row % (longest + 1) for row in range(batch)]


def _compare(plan: Plan, engine: Engine, call: Call, own_dtype: bool = False) -> None:
    loop = loop_of(_narrow(call, plan))
    params = _chosen_params(plan, call)
    wants = [
        *(t.requires_grad and call.train for t in call.x.leaves),
        *(t.dtype.is_floating_point and call.train for t in call.state.leaves),
        *(t.requires_grad and call.train for t in params),
    ]

    def planned(x: list[Tensor], state: list[Tensor], params: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        return run_engine(engine, plan.number, loop, x, state, params, call.train, uneven=call.uneven)

    names = [name for group in plan.names.values() for name in group]
    rng = torch.get_rng_state()
    try:
        with torch.autocast("cpu", enabled=False):
            rows = None if call.uneven is None else int(call.uneven[-1])
            check(planned, loop, call.x.leaves, call.state.leaves, params, plan.dtype, wants, names, rows, own_dtype)
            plan.truth = plan.dtype if own_dtype else torch.float64
    except Refused:
        raise
    except Exception as error:
        if not plan.placed and params:
            plan.placed = True  # a Function that only runs on real data was handed a parameter of the cell
            _compare(plan, engine, call, own_dtype)
            return
        if not own_dtype and plan.dtype is not torch.float64:  # "expected m1 and m2 to have the same dtype"
            _compare(plan, engine, call, own_dtype=True)
            return
        raise Refused(
            f"the self-check could not run ({type(error).__name__}: {str(error).splitlines()[0][:120]})"
        ) from error
    finally:
        torch.set_rng_state(rng)


def _kept_in(call: Call) -> torch.dtype | None:
    """The dtype below float32 that x and state come in, if it is one: what backward needs is kept in it, as a loop would."""
    kinds = {leaf.dtype for leaf in (*call.x.leaves, *call.state.leaves) if leaf.dtype.is_floating_point}
    return kinds.pop() if len(kinds) == 1 and kinds < set(_LOW) else None


def execute(plan: Plan, call: Call) -> tuple[Any, Any]:
    """Run a planned call; returns (y, last state) in the structure of the user's step."""
    if plan.engine is None:
        own = pytree.tree_unflatten(list(call.params.leaves), call.params.spec)
        start = pytree.tree_unflatten(list(call.state.leaves), call.state.spec)
        return unbind_loop(call.step, call.x, start, own)

    joint = plan.engine.parts.joint
    y, last = run_engine(
        plan.engine, plan.number, loop_of(_narrow(call, plan)), list(call.x.leaves), list(call.state.leaves),
        _chosen_params(plan, call), call.train, _kept_in(call), call.uneven,
    )  # fmt: skip
    y = [leaf.to(dtype) for leaf, dtype in zip(y, plan.y_dtypes)]
    last = [leaf.to(dtype) for leaf, dtype in zip(last, plan.state_dtypes)]
    return pytree.tree_unflatten(y, joint.y_spec), pytree.tree_unflatten(last, joint.state_spec)
