"""The wrapped function as an operator of torch.library: a kernel, a fake kernel, and a backward that is one, too.

Registered with `Library` and not `custom_op`, whose autograd costs 40 us more per call (measured on torch 2.13, 2 cores).
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from gradsmith.external.errors import ExternalError

NAMESPACE = "gradsmith_external"
_library = torch.library.Library(NAMESPACE, "FRAGMENT")
_numbers = itertools.count()

Kernel = Callable[[list[Tensor], int], list[Tensor]]
BackwardKernel = Callable[[list[Tensor], list[Tensor], int, list[bool]], list[Tensor]]


def register(name: str, forward: Kernel, fake: Kernel, backward: BackwardKernel) -> Any:
    """The operator `(Tensor[] inputs, int call) -> Tensor[]`, ready for eager mode, autograd and torch.compile."""
    word = f"{re.sub(r'[^0-9a-zA-Z_]', '_', name)}_{next(_numbers)}"
    _library.define(f"{word}(Tensor[] inputs, int call) -> Tensor[]")
    _library.define(f"{word}_backward(Tensor[] inputs, Tensor[] grads, int call, bool[] needed) -> Tensor[]")
    op = getattr(getattr(torch.ops, NAMESPACE), word).default
    op_backward = getattr(getattr(torch.ops, NAMESPACE), f"{word}_backward").default
    _library.impl(word, forward, "CompositeExplicitAutograd")
    _library.impl(f"{word}_backward", backward, "CompositeExplicitAutograd")
    torch.library.register_fake(f"{NAMESPACE}::{word}", fake, lib=_library)
    torch.library.register_fake(f"{NAMESPACE}::{word}_backward", _fake_backward, lib=_library)
    first, second = _functions(name, op, op_backward)

    def autograd(inputs: list[Tensor], call: int) -> list[Tensor]:
        if torch.is_grad_enabled() and any(t.requires_grad for t in inputs):
            return list(first.apply(call, *inputs))
        with torch._C._AutoDispatchBelowAutograd():
            return op(inputs, call)  # type: ignore[no-any-return]

    def autograd_backward(inputs: list[Tensor], grads: list[Tensor], call: int, needed: list[bool]) -> list[Tensor]:
        if torch.is_grad_enabled() and any(t.requires_grad for t in (*inputs, *grads)):
            return list(second.apply(len(inputs), call, needed, *inputs, *grads))
        with torch._C._AutoDispatchBelowAutograd():
            return op_backward(inputs, grads, call, needed)  # type: ignore[no-any-return]

    _library.impl(word, autograd, "Autograd")
    _library.impl(f"{word}_backward", autograd_backward, "Autograd")
    return op


def _fake_backward(inputs: list[Tensor], grads: list[Tensor], call: int, needed: list[bool]) -> list[Tensor]:
    return [torch.empty(t.shape if n else (0,), dtype=t.dtype, device=t.device) for t, n in zip(inputs, needed)]


def _functions(name: str, op: Any, op_backward: Any) -> tuple[Any, Any]:
    class Forward(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, call: int, *inputs: Tensor) -> Any:
            ctx.save_for_backward(*inputs)
            ctx.call = call
            with torch._C._AutoDispatchBelowAutograd():
                found = op(list(inputs), call)
            ctx.mark_non_differentiable(*(t for t in found if not (t.is_floating_point() or t.is_complex())))
            return tuple(found)

        @staticmethod
        def backward(ctx: Any, *grads: Tensor) -> Any:
            needed = list(ctx.needs_input_grad[1:])
            found = op_backward(list(ctx.saved_tensors), list(grads), ctx.call, needed)
            return None, *(g if n else None for g, n in zip(found, needed))

    class Backward(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, split: int, call: int, needed: list[bool], *tensors: Tensor) -> Any:
            with torch._C._AutoDispatchBelowAutograd():
                return tuple(op_backward(list(tensors[:split]), list(tensors[split:]), call, needed))

        @staticmethod
        def backward(ctx: Any, *grads: Tensor) -> Any:
            raise ExternalError(
                f"{name} can be differentiated once only: its gradient comes from foreign code, which autograd cannot see into. "
                "Differentiate without create_graph=True, or write the second derivative as a function of its own."
            )

    Forward.__name__ = Forward.__qualname__ = f"{name}_wrapped"
    return Forward, Backward
