"""What is asked of the arguments of every op: a tensor of floating point, a number that makes sense."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from gradsmith.ops.route import autocast_dtype


def floating(x: Any, op: str, name: str = "x") -> None:
    """Nothing, or an error that says which argument of which op is not a floating-point tensor."""
    if not isinstance(x, Tensor):
        raise TypeError(f"{op}: {name} must be a tensor, not {type(x).__name__}.")
    if not (x.is_floating_point() or x.is_complex()):
        raise TypeError(f"{op}: {name} has dtype {x.dtype}; only floating-point tensors have gradients.")


def number(value: Any, op: str, name: str, *, least: float = -math.inf) -> None:
    """Nothing, or an error: the value must be a finite number (or a tensor of one element), not below `least`."""
    if isinstance(value, Tensor):
        if value.dim():
            raise ValueError(f"{op}: {name} must be one number; it is a tensor of shape {tuple(value.shape)}.")
        return
    if not isinstance(value, (int, float)):
        raise TypeError(f"{op}: {name} must be a number, not {type(value).__name__}.")
    if not math.isfinite(value) or value < least:
        wanted = "finite" if least == -math.inf else f"finite and at least {least:g}"
        raise ValueError(f"{op}: {name} must be {wanted}; it is {value}.")


def normalised(x: Tensor, shape: Any, op: str, **parameters: Tensor | None) -> tuple[int, ...]:
    """The dimensions to normalise over, as a tuple; an error if they are not the last ones of x, or a parameter's."""
    wanted = (shape,) if isinstance(shape, int) else tuple(shape)
    if not wanted:
        raise ValueError(f"{op}: normalized_shape is empty; give the sizes of the last dimensions of x.")
    if tuple(x.shape[-len(wanted) :]) != wanted or x.dim() < len(wanted):
        raise ValueError(f"{op}: x has shape {tuple(x.shape)}, which does not end with normalized_shape {wanted}.")
    for name, parameter in parameters.items():
        if parameter is None:
            continue
        floating(parameter, op, name)
        if tuple(parameter.shape) != wanted:
            raise ValueError(f"{op}: {name} has shape {tuple(parameter.shape)}, expected {wanted}.")
    return wanted


def linear(x: Tensor, weight: Tensor, bias: Tensor | None, op: str) -> tuple[Tensor, Tensor, Tensor | None]:
    """The operands of a linear map, as autocast wants them; an error if sizes or dtypes do not fit."""
    floating(x, op)
    floating(weight, op, "weight")
    if weight.dim() != 2:
        raise ValueError(f"{op}: weight has shape {tuple(weight.shape)}, expected (outputs, inputs).")
    if x.dim() == 0 or x.shape[-1] != weight.shape[1]:
        raise ValueError(f"{op}: x of shape {tuple(x.shape)} does not fit weight of shape {tuple(weight.shape)}.")
    if bias is not None and tuple(bias.shape) != (weight.shape[0],):
        raise ValueError(f"{op}: bias has shape {tuple(bias.shape)}, expected ({weight.shape[0]},).")
    dtype = autocast_dtype(x) if x.dtype != torch.float64 else None
    if dtype is not None:
        return x.to(dtype), weight.to(dtype), None if bias is None else bias.to(dtype)
    for name, other in (("weight", weight), ("bias", bias)):
        if other is not None and other.dtype != x.dtype:
            raise TypeError(f"{op}: x has dtype {x.dtype} but {name} {other.dtype}; convert one of them.")
    return x, weight, bias
