"""The wrapped function under torch.func: at every level of grad, and row by row under vmap."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from gradsmith.external.errors import ExternalError


def once_only(name: str) -> ExternalError:
    return ExternalError(
        f"{name} can be differentiated once only: its gradient comes from foreign code, which autograd cannot see into. "
        "Differentiate without create_graph=True, or write the second derivative as a function of its own."
    )


def no_forward_mode(name: str) -> ExternalError:
    return ExternalError(
        f"{name} has no forward mode (jvp, jacfwd, dual tensors). Use reverse mode: backward(), torch.func.grad or jacrev."
    )


def under_func(name: str, op: Any, op_backward: Any) -> Callable[..., Any]:
    """`(call, *inputs) -> outputs` as torch.func wants it; the operator itself is called below all its levels."""

    class Forward(torch.autograd.Function):
        @staticmethod
        def forward(call: int, *inputs: Tensor) -> Any:
            return tuple(op(list(inputs), call))

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.call, *tensors = inputs
            ctx.save_for_backward(*tensors)
            ctx.mark_non_differentiable(*(t for t in output if not (t.is_floating_point() or t.is_complex())))

        @staticmethod
        def backward(ctx: Any, *grads: Tensor) -> Any:
            tensors, needed = ctx.saved_tensors, tuple(ctx.needs_input_grad[1:])
            found = Backward.apply(ctx.call, len(tensors), needed, *tensors, *grads)
            return None, *(g if n else None for g, n in zip(found, needed))

        @staticmethod
        def jvp(ctx: Any, *tangents: Any) -> Any:
            raise no_forward_mode(name)

        @staticmethod
        def vmap(info: Any, in_dims: Any, call: int, *inputs: Tensor) -> Any:
            return _row_by_row(info.batch_size, in_dims[1:], inputs, lambda row: Forward.apply(call, *row))

    class Backward(torch.autograd.Function):
        @staticmethod
        def forward(call: int, split: int, needed: tuple[bool, ...], *tensors: Tensor) -> Any:
            return tuple(op_backward(list(tensors[:split]), list(tensors[split:]), call, list(needed)))

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            pass

        @staticmethod
        def backward(ctx: Any, *grads: Tensor) -> Any:
            raise once_only(name)

        @staticmethod
        def jvp(ctx: Any, *tangents: Any) -> Any:
            raise no_forward_mode(name)

        @staticmethod
        def vmap(info: Any, in_dims: Any, call: int, split: int, needed: tuple[bool, ...], *tensors: Tensor) -> Any:
            return _row_by_row(
                info.batch_size, in_dims[3:], tensors, lambda row: Backward.apply(call, split, needed, *row)
            )

    apply: Callable[..., Any] = Forward.apply
    return apply


def _row_by_row(rows: int, in_dims: Any, tensors: Any, run: Callable[[list[Tensor]], Any]) -> tuple[Any, Any]:
    found = [run([t if d is None else t.select(d, k) for t, d in zip(tensors, in_dims)]) for k in range(rows)]
    stacked = tuple(torch.stack(parts) for parts in zip(*found))
    return stacked, tuple(0 for _ in stacked)
