"""Stage 4: call an engine as an operator that autograd, torch.compile and tracing can see through.

The loops are `torch.library` operators with fake kernels. The autograd Function stands outside of them, which costs
6 microseconds where `custom_op` with `register_autograd` costs 17. First derivatives come from the engine; a second
derivative (`create_graph=True`) replays the user's own step under autograd.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor

from .engine import Engine, Kept
from .span import Span
from .twice import Parts, Replay, gradients_of

_numbers = itertools.count()
_engines: weakref.WeakValueDictionary[int, Engine] = weakref.WeakValueDictionary()

_library = torch.library.Library("gradsmith", "FRAGMENT")
_library.define(
    "recurrent_forward(int engine, Tensor[] x, Tensor[] state, Tensor[] params, bool keep, Tensor? uneven=None) -> Tensor[]"
)
_library.define(
    "recurrent_backward(int engine, Tensor[] x, Tensor[] state, Tensor[] params, Tensor[] kept, Tensor[] grad_y,"
    " Tensor[] grad_state, Tensor? uneven=None) -> Tensor[]"
)


def register(engine: Engine, number: int | None = None) -> int:
    """The number by which operators know an engine, for as long as somebody holds it."""
    number = next(_numbers) if number is None else number
    _engines[number] = engine
    return number


def _watched() -> bool:
    """Whether a mode wants to see operators go by (a profiler of operators, a tracer, a fake mode)."""
    return bool(torch._C._len_torch_dispatch_stack()) or torch.compiler.is_compiling()


def _full_precision() -> AbstractContextManager[Any]:
    return torch.autocast("cpu", enabled=False) if torch.is_autocast_enabled("cpu") else nullcontext()


def _forward(
    engine: int, x: list[Tensor], state: list[Tensor], params: list[Tensor], keep: bool, uneven: Tensor | None = None
) -> list[Tensor]:
    with _full_precision():
        kept = _engines[engine].forward(x, state, params, keep, uneven)
    return [*kept.states, *kept.outputs, *kept.saved]


def unpack(engine: Engine, tensors: Sequence[Tensor]) -> Kept:
    n_states = len(engine.parts.joint.state)
    n_outputs = sum(shared is None for shared in engine.y_in_state)
    states, rest = list(tensors[:n_states]), list(tensors[n_states:])
    return Kept(states, rest[:n_outputs], rest[n_outputs:])


def _backward(
    engine: int,
    x: list[Tensor],
    state: list[Tensor],
    params: list[Tensor],
    kept: list[Tensor],
    grad_y: list[Tensor],
    grad_state: list[Tensor],
    uneven: Tensor | None = None,
) -> list[Tensor]:
    own = _engines[engine]
    with _full_precision():
        found = own.backward(x, state, params, unpack(own, kept), grad_y, grad_state, uneven)
    shapes = [*x, *state, *params]
    pairs = zip([*found.x, *found.state, *found.params], shapes)
    taken = {t.untyped_storage().data_ptr() for t in (*x, *state, *params, *kept, *grad_y, *grad_state)}
    return [_own(g.reshape(like.shape), taken) for g, like in pairs if g is not None]


def _own(gradient: Tensor, taken: set[int]) -> Tensor:
    """Two biases that are added have one gradient, but each needs its own memory: optimizers work in place."""
    pointer = gradient.untyped_storage().data_ptr()
    if pointer in taken:
        return gradient.clone()
    taken.add(pointer)
    return gradient


def _forward_fake(
    engine: int, x: list[Tensor], state: list[Tensor], params: list[Tensor], keep: bool, uneven: Tensor | None = None
) -> list[Tensor]:
    return _engines[engine].forward_shapes(x, state, keep, uneven)


def _backward_fake(
    engine: int,
    x: list[Tensor],
    state: list[Tensor],
    params: list[Tensor],
    kept: list[Tensor],
    grad_y: list[Tensor],
    grad_state: list[Tensor],
    uneven: Tensor | None = None,
) -> list[Tensor]:
    likes = [*x, *state, *params]
    return [torch.empty_like(like) for like, present in zip(likes, _engines[engine].gradients_present) if present]


_library.impl("recurrent_forward", _forward, "CompositeExplicitAutograd")
_library.impl("recurrent_backward", _backward, "CompositeExplicitAutograd")
torch.library.register_fake("gradsmith::recurrent_forward", _forward_fake, lib=_library)
torch.library.register_fake("gradsmith::recurrent_backward", _backward_fake, lib=_library)


class RecurrentFunction(torch.autograd.Function):
    """Connects an engine to autograd; `replay` runs the same computation under autograd.

    Leaves come in the user's dtype and are kept in it. `low` (bfloat16 or float16) is also the dtype of what forward keeps
    and returns: the engine computes in float32, and half of the memory is held until backward.
    `uneven` is where the rows of each step begin if sequences have different lengths (see span.py).
    """

    @staticmethod
    def forward(
        ctx: Any, engine: Engine, number: int, replay: Replay, low: torch.dtype | None, uneven: Tensor | None, n_x: int,
        n_state: int, *leaves: Tensor,
    ) -> Any:  # fmt: skip
        given = [_as(leaf, engine.dtype) for leaf in leaves]
        x, state, params = given[:n_x], given[n_x : n_x + n_state], given[n_x + n_state :]
        call = torch.ops.gradsmith.recurrent_forward if _watched() else _forward
        flat = call(number, x, state, params, True, uneven)
        flat = [_as(tensor, low) for tensor in flat] if low is not None else flat
        y, last = engine.results(unpack(engine, flat), Span.of(x, state, uneven))
        last = [leaf.clone() for leaf in last]
        ctx.engine, ctx.number, ctx.replay, ctx.n_x, ctx.n_state, ctx.n_y = engine, number, replay, n_x, n_state, len(y)
        ctx.save_for_backward(uneven, *leaves, *(tensor for tensor, read in zip(flat, engine.read_in_backward) if read))
        ctx.mark_non_differentiable(*(leaf for leaf in (*y, *last) if not leaf.dtype.is_floating_point))
        return (*y, *last)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        n_leaves = len(ctx.needs_input_grad) - _NO_LEAVES
        uneven, *saved = ctx.saved_tensors  # once: checkpointing recomputes at every access
        leaves, read = saved[:n_leaves], iter(saved[n_leaves:])
        nothing: list[Tensor | None] = [None] * _NO_LEAVES
        if torch.is_grad_enabled():
            return (*nothing, *_again(ctx, uneven, list(leaves), list(read), gradients))
        found = _first(ctx, uneven, leaves, list(read), gradients)
        return (*nothing, *(None if g is None else _as(g, leaf.dtype) for g, leaf in zip(found, leaves)))


def _first(
    ctx: Any, uneven: Tensor | None, leaves: Sequence[Tensor], read: list[Tensor], gradients: Sequence[Tensor]
) -> list[Tensor | None]:
    """The gradients of all leaves, by the engine."""
    dtype, left = ctx.engine.dtype, iter(read)
    x, state, params = _parts(ctx, [_as(leaf, dtype) for leaf in leaves])
    gradients = [_as(gradient, dtype) for gradient in gradients]
    nowhere = x[0].new_empty(0)
    kept = [_as(next(left), dtype) if is_read else nowhere for is_read in ctx.engine.read_in_backward]
    call = torch.ops.gradsmith.recurrent_backward if _watched() else _backward
    results = iter(call(ctx.number, x, state, params, kept, gradients[: ctx.n_y], gradients[ctx.n_y :], uneven))
    return [next(results) if present else None for present in ctx.engine.gradients_present]


_NO_LEAVES = 7
"""Arguments of `RecurrentFunction.forward` in front of the leaves."""


def _as(tensor: Tensor, dtype: torch.dtype) -> Tensor:
    return tensor.to(dtype) if tensor.dtype is not dtype and tensor.dtype.is_floating_point else tensor


def _parts(ctx: Any, leaves: list[Tensor]) -> tuple[list[Tensor], list[Tensor], list[Tensor]]:
    return leaves[: ctx.n_x], leaves[ctx.n_x : ctx.n_x + ctx.n_state], leaves[ctx.n_x + ctx.n_state :]


def _again(
    ctx: Any, uneven: Tensor | None, leaves: list[Tensor], read: list[Tensor], gradients: tuple[Tensor, ...]
) -> list[Tensor | None]:
    """The gradients as a function that autograd can differentiate: by engines, or by the user's own step, run once more."""
    if uneven is None and not _watched() and not torch._C._are_functorch_transforms_active():
        dtype = ctx.engine.dtype

        def first() -> list[Tensor]:
            with torch.no_grad():
                return [g for g in _first(ctx, None, leaves, read, gradients) if g is not None]

        def run(
            plan: Any, x: list[Tensor], state: list[Tensor], params: list[Tensor]
        ) -> tuple[list[Tensor], list[Tensor]]:
            return run_engine(plan.engine, plan.number, plan.loop, x, state, params, train=True)

        parts = Parts(*_parts(ctx, [_as(leaf, dtype) for leaf in leaves]), [_as(g, dtype) for g in gradients])
        found = gradients_of(ctx.engine, first, run, ctx.replay, parts)
        if found is not None:
            return [None if g is None else _as(g, leaf.dtype) for g, leaf in zip(found, leaves)]
    wanted = [i for i, leaf in enumerate(leaves) if leaf.requires_grad]
    y, last = ctx.replay(*_parts(ctx, leaves))
    pairs = [(out, _as(g, out.dtype)) for out, g in zip((*y, *last), gradients) if out.requires_grad]
    replayed = torch.autograd.grad(
        [out for out, _ in pairs],
        [leaves[i] for i in wanted],
        [g for _, g in pairs],
        create_graph=True,
        allow_unused=True,
    )
    by_leaf: list[Tensor | None] = [None] * len(leaves)
    for i, gradient in zip(wanted, replayed):
        by_leaf[i] = gradient
    return by_leaf


def run_engine(
    engine: Engine,
    number: int,
    replay: Replay,
    x: list[Tensor],
    state: list[Tensor],
    params: list[Tensor],
    train: bool,
    low: torch.dtype | None = None,
    uneven: Tensor | None = None,
) -> tuple[list[Tensor], list[Tensor]]:
    """(y, last state) of an engine; without gradients nothing is kept."""
    if train:
        outputs = RecurrentFunction.apply(engine, number, replay, low, uneven, len(x), len(state), *x, *state, *params)
        n_y = len(outputs) - len(state)
        return list(outputs[:n_y]), list(outputs[n_y:])
    with torch.no_grad():
        x, state, params = ([_as(t, engine.dtype) for t in group] for group in (x, state, params))
        flat = torch.ops.gradsmith.recurrent_forward(number, x, state, params, False, uneven)
        y, last = engine.results(unpack(engine, flat), Span.of(x, state, uneven))
    return y, [leaf.clone() for leaf in last]
