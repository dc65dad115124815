"""Watch custom Functions while they run: what they save, mark, receive and return, before the engine touches it.

The engine casts dtypes and sums expandable shapes before anyone sees a gradient, so only a wrapper around `backward`
sees what the user really returned. Never while torch.compile runs: dynamo refuses patched Functions.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from gradsmith.lab.subject.target import has_setup_context


@dataclass
class ForwardCall:
    """One call of a Function's forward, with the state of ctx right after it."""

    cls: type
    ctx: Any
    args: tuple[Any, ...]
    outputs: tuple[Any, ...]
    saved: tuple[Tensor | None, ...]
    dirty: tuple[Tensor, ...]
    non_differentiable: tuple[Tensor, ...]
    needs_input_grad: tuple[bool, ...]

    def attributes(self) -> dict[str, Any]:
        """What the user wrote on ctx as plain attributes."""
        return dict(vars(self.ctx)) if hasattr(self.ctx, "__dict__") else {}


@dataclass
class BackwardCall:
    """One call of a Function's backward, raw."""

    cls: type
    ctx: Any
    grad_outputs: tuple[Any, ...]
    returned: tuple[Any, ...]


@dataclass
class Trace:
    forwards: list[ForwardCall] = field(default_factory=list)
    backwards: list[BackwardCall] = field(default_factory=list)


@contextlib.contextmanager
def observing(classes: Sequence[type[torch.autograd.Function]], trace: Trace) -> Iterator[Trace]:
    """Record every forward and backward of `classes` into `trace` while the block runs."""
    undo: list[Callable[[], None]] = []
    try:
        for cls in classes:
            undo.append(_patched(cls, "forward", _forward_wrapper(cls, trace)))
            if has_setup_context(cls):
                undo.append(_patched(cls, "setup_context", _setup_wrapper(cls, trace)))
            name = "vjp" if "vjp" in _own_names(cls) and "backward" not in _own_names(cls) else "backward"
            undo.append(_patched(cls, name, _backward_wrapper(cls, name, trace)))
        yield trace
    finally:
        for put_back in reversed(undo):
            put_back()


def _own_names(cls: type) -> set[str]:
    return {name for base in cls.__mro__ if not base.__module__.startswith("torch.") for name in vars(base)}


def _patched(cls: type, name: str, wrapper: Callable[..., Any]) -> Callable[[], None]:
    own = cls.__dict__.get(name)
    setattr(cls, name, staticmethod(wrapper))
    if own is None:
        return lambda: delattr(cls, name)
    return lambda: setattr(cls, name, own)


def _forward_wrapper(cls: type, trace: Trace) -> Callable[..., Any]:
    original = cls.forward  # type: ignore[attr-defined]
    with_ctx = not has_setup_context(cls)

    def forward(*args: Any, **kwargs: Any) -> Any:
        outputs = original(*args, **kwargs)
        if with_ctx:
            trace.forwards.append(_forward_call(cls, args[0], args[1:], outputs))
        return outputs

    return forward


def _setup_wrapper(cls: type, trace: Trace) -> Callable[..., Any]:
    original = cls.setup_context  # type: ignore[attr-defined]

    def setup_context(ctx: Any, inputs: Any, output: Any) -> Any:
        result = original(ctx, inputs, output)
        trace.forwards.append(_forward_call(cls, ctx, tuple(inputs), output))
        return result

    return setup_context


def _backward_wrapper(cls: type, name: str, trace: Trace) -> Callable[..., Any]:
    original = getattr(cls, name)

    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        returned = original(ctx, *grad_outputs)
        raw = returned if isinstance(returned, tuple) else (returned,)
        trace.backwards.append(BackwardCall(cls, ctx, grad_outputs, raw))
        return returned

    return backward


def _forward_call(cls: type, ctx: Any, args: tuple[Any, ...], outputs: Any) -> ForwardCall:
    def listed(name: str) -> tuple[Any, ...]:
        value = getattr(ctx, name, None)
        return tuple(value) if value is not None else ()

    outs = tuple(outputs) if isinstance(outputs, (tuple, list)) else (outputs,)
    needs = getattr(ctx, "needs_input_grad", ())
    return ForwardCall(
        cls,
        ctx,
        args,
        outs,
        listed("to_save"),
        listed("dirty_tensors"),
        listed("non_differentiable"),
        tuple(needs) if needs else (),
    )
