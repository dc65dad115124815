"""bfloat16 under the interpreter: it keeps raw bits and computes on them as integers, so compute in float32 and round."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import triton.language as tl
from triton.runtime import interpreter

from gradsmith.lab.triton.counts import used

# Operations on numbers; loads, stores and those that only move elements are right on raw bits.
_OPERATIONS = (
    "binary_op",
    "unary_op",
    "create_fabs",
    "create_fma",
    "create_rsqrt",
    "create_erf",
    "create_clampf",
    "create_dot",
)


def decoded(bits: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The numbers behind raw bfloat16 bits.

    >>> decoded(np.array([0x3F80, 0xC000], np.uint16)).tolist()
    [1.0, -2.0]
    """
    return (np.asarray(bits).astype(np.uint32) << 16).view(np.float32)


def encoded(numbers: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Raw bfloat16 bits of numbers, rounded to nearest, ties to even.

    >>> decoded(encoded(np.array([1.0, 1.00390625, float("nan")], np.float32))).tolist()
    [1.0, 1.0, nan]
    """
    with np.errstate(all="ignore"):
        bits = np.ascontiguousarray(numbers, dtype=np.float32).view(np.uint32)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    return np.where(np.isnan(numbers), 0x7FC0, rounded).astype(np.uint16)


def install() -> None:
    """Every operation that meets a bfloat16 computes in float32 and rounds."""
    builder = interpreter.InterpreterBuilder
    for name in _OPERATIONS:
        if hasattr(builder, name):
            setattr(builder, name, _rounding(getattr(builder, name)))
    for name in ("cast_impl", "create_fp_to_fp"):
        if hasattr(builder, name):
            setattr(builder, name, _casting(getattr(builder, name)))
    if not hasattr(builder, "get_bf16"):  # a Python number beside a bfloat16, before triton 3.3
        builder.get_bf16 = _constant
    builder.create_atomic_rmw = _refusing(builder.create_atomic_rmw)
    reductions = interpreter.ReduceScanOpInterface
    reductions.apply = _reducing(reductions.apply)


def _constant(_: Any, value: float) -> Any:
    return interpreter.TensorHandle(encoded(np.array([value], np.float32)), tl.bfloat16)


def _is_bfloat16(handle: Any) -> bool:
    return (
        isinstance(handle, interpreter.TensorHandle)
        and handle.dtype.scalar == tl.bfloat16
        and handle.data.dtype == np.uint16
    )


def _wide(value: Any) -> Any:
    return interpreter.TensorHandle(decoded(value.data), tl.float32) if _is_bfloat16(value) else value


def _rounding(operation: Any) -> Any:
    @functools.wraps(operation)
    def compute(self: Any, *arguments: Any, **named: Any) -> Any:
        if not any(_is_bfloat16(a) for a in arguments):
            return operation(self, *arguments, **named)
        used("bfloat16")
        result = operation(self, *(_wide(a) for a in arguments), **named)
        if result.data.dtype == np.float32 and not _is_accumulator(operation, arguments):
            return interpreter.TensorHandle(encoded(result.data), tl.bfloat16)
        return result

    return compute


def _is_accumulator(operation: Any, arguments: Any) -> bool:
    """A dot product has the type of what it is added to, and not that of its factors."""
    return operation.__name__ == "create_dot" and not _is_bfloat16(arguments[2])


def _casting(operation: Any) -> Any:
    @functools.wraps(operation)
    def cast(self: Any, source: Any, kind: Any, *more: Any) -> Any:
        into = kind.scalar == tl.bfloat16
        if not _is_bfloat16(source) and not into:
            return operation(self, source, kind, *more)
        used("bfloat16")
        numbers = decoded(source.data) if _is_bfloat16(source) else source.data
        if into:
            return interpreter.TensorHandle(encoded(numbers.astype(np.float32)), tl.bfloat16)
        return interpreter.TensorHandle(numbers.astype(interpreter._get_np_dtype(kind.scalar)), kind.scalar)

    return cast


def _refusing(operation: Any) -> Any:
    @functools.wraps(operation)
    def atomic(self: Any, kind: Any, pointer: Any, value: Any, *more: Any) -> Any:
        if _is_bfloat16(value):
            raise NotImplementedError("atomics on bfloat16 are not interpreted")
        return operation(self, kind, pointer, value, *more)

    return atomic


def _reducing(operation: Any) -> Any:
    @functools.wraps(operation)
    def apply(self: Any, given: Any) -> Any:
        values = given if isinstance(given, tuple) else (given,)
        if not any(_is_bfloat16(v.handle) for v in values):
            return operation(self, given)
        used("bfloat16")
        result = operation(self, tuple(_retyped(v, tl.float32, _wide(v.handle)) for v in values))
        back = tuple(
            _retyped(r, tl.bfloat16, interpreter.TensorHandle(encoded(r.handle.data), tl.bfloat16))
            if r.handle.data.dtype == np.float32
            else r
            for r in result
        )
        return back if isinstance(given, tuple) else back[0]

    return apply


def _retyped(value: Any, kind: Any, handle: Any) -> Any:
    if handle is value.handle:
        return value
    shape = getattr(value.type, "shape", None) if value.type.is_block() else None
    return tl.core.tensor(handle, tl.block_type(kind, list(shape)) if shape else kind)
