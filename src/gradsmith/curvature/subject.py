"""A function of tensors, or a module as a function of its parameters: what the three derivatives are taken of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

Function = Callable[[Any], Any]


def as_function(fn: Any, inputs: tuple[Any, ...], at: Any, loss: Callable[[Any], Tensor] | None, op: str) -> tuple[Function, Any]:  # fmt: skip
    """(a function of one structure of tensors, the point to differentiate at).

    For a function: fn itself, at its inputs (a tensor, or a tuple of several). For a module: the function of its
    parameters (a dict), with the inputs held fixed.
    """
    if isinstance(fn, nn.Module):
        if at is not None:
            raise TypeError(f"{op}: at= is for functions; a module is differentiated by its own parameters.")
        held = {name: p.detach() for name, p in fn.named_parameters() if p.requires_grad}
        if not held:
            raise ValueError(f"{op}: {type(fn).__name__} has no parameter that requires grad.")
        own = inputs

        def of_parameters(parameters: dict[str, Tensor]) -> Any:
            result = torch.func.functional_call(fn, parameters, own)
            return result if loss is None else loss(result)

        return of_parameters, held
    if not callable(fn):
        raise TypeError(f"{op}: expected a function or a module, not {type(fn).__name__}.")
    if not inputs:
        raise TypeError(f"{op}: give the tensors at which to differentiate.")
    for number, x in enumerate(inputs):
        if not isinstance(x, Tensor) or not x.is_floating_point():
            kind = x.dtype if isinstance(x, Tensor) else type(x).__name__
            raise TypeError(f"{op}: input {number} must be a floating-point tensor, not {kind}; hold other arguments in a lambda.")  # fmt: skip
    point = tuple(x.detach() for x in inputs)

    def of_inputs(tensors: tuple[Tensor, ...]) -> Any:
        result = fn(*tensors)
        return result if loss is None else loss(result)

    return of_inputs, point


def scalar(function: Function, op: str) -> Function:
    """The function, held to one number as its result."""

    def checked(point: Any) -> Tensor:
        result = function(point)
        if not isinstance(result, Tensor) or result.numel() != 1:
            shape = tuple(result.shape) if isinstance(result, Tensor) else type(result).__name__
            raise ValueError(f"{op}: the function must give one number, it gives {shape}; sum it, or pass loss=.")
        return result.reshape(())

    return checked


def single(inputs: tuple[Any, ...], fn: Any, result: Any) -> Any:
    """A tuple of one, for a function of one tensor, without the tuple."""
    return result[0] if not isinstance(fn, nn.Module) and len(inputs) == 1 else result
