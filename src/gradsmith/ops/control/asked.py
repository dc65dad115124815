"""What is asked of the arguments of every op: a tensor of floating point, a number that makes sense."""

from __future__ import annotations

import math
from typing import Any

from torch import Tensor


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
