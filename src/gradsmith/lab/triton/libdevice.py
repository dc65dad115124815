"""libdevice by NumPy: triton ships it as a table of stubs that only a compiler fills."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import triton.language as tl
from triton.runtime import interpreter

from gradsmith.lab.triton import bfloat16
from gradsmith.lab.triton.counts import used

_HOMES = ("triton.language.extra.libdevice", "triton.language.extra.cuda.libdevice")
_elementwise = np.vectorize


def _lifted(function: Callable[[float], float]) -> Callable[..., Any]:
    """A function of the standard library, for arrays."""
    return lambda x: _elementwise(function, otypes=[np.float64])(x)


_SAME_NAME = [
    "tanh",
    "exp",
    "exp2",
    "expm1",
    "log",
    "log2",
    "log10",
    "log1p",
    "sqrt",
    "sin",
    "cos",
    "tan",
    "sinh",
    "cosh",
    "abs",
    "floor",
    "ceil",
    "trunc",
    "rint",
    "cbrt",
    "fmod",
    "isnan",
    "isinf",
    "fmax",
    "fmin",
    "copysign",
    "hypot",
    "nextafter",
    "signbit",
]
_OTHER_NAME: dict[str, Callable[..., Any]] = {
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "atan2": np.arctan2,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "fabs": np.abs,
    "round": np.round,
    "pow": np.power,
    "max": np.maximum,
    "min": np.minimum,
    "fast_expf": np.exp,
    "fast_logf": np.log,
    "fast_log2f": np.log2,
    "fast_sinf": np.sin,
    "fast_cosf": np.cos,
    "fast_tanhf": np.tanh,
    "fast_powf": np.power,
    "fast_dividef": np.divide,
    "div_rn": np.divide,
    "div_rz": np.divide,
    "rcp_rn": lambda x: 1 / x,
    "rcp64h": lambda x: 1 / x,
    "mul_rn": np.multiply,
    "add_rn": np.add,
    "sub_rn": np.subtract,
    "sqrt_rn": np.sqrt,
    "fma": lambda a, b, c: a * b + c,
    "finitef": np.isfinite,
    "exp10": lambda x: np.power(10.0, x),
    "erf": _lifted(math.erf),
    "erfc": _lifted(math.erfc),
    "lgamma": _lifted(math.lgamma),
    "tgamma": _lifted(math.gamma),
}
TABLE: dict[str, Callable[..., Any]] = {name: getattr(np, name) for name in _SAME_NAME} | _OTHER_NAME


def install() -> None:
    """Fill the tables; a function that NumPy lacks raises by its name once a kernel calls it."""
    for home in _HOMES:
        try:
            module = importlib.import_module(home)
        except ImportError:  # another triton keeps it elsewhere
            continue
        for name, value in list(vars(module).items()):
            if callable(value) and not name.startswith("_") and getattr(value, "__module__", "") == home:
                setattr(module, name, _computed(name, TABLE[name]) if name in TABLE else _missing(name))


def _computed(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def run(*arguments: Any, _semantic: Any = None, _builder: Any = None, **more: Any) -> Any:
        used(f"libdevice.{name}")
        tensors = [_tensor(a) for a in arguments]
        floating = [t for t in tensors if t.dtype.is_floating()] or tensors
        kind = max((t.dtype.scalar for t in floating), key=lambda d: d.primitive_bitwidth)
        with np.errstate(all="ignore"):
            result = np.asarray(function(*(_numbers(t.handle) for t in tensors)))
        if result.dtype == bool:
            return _wrapped(result, tl.int1)
        if kind == tl.bfloat16:
            return _wrapped(bfloat16.encoded(result.astype(np.float32)), kind)
        return _wrapped(result.astype(interpreter._get_np_dtype(kind)), kind)

    return run


def _missing(name: str) -> Callable[..., Any]:
    def run(*_: Any, **__: Any) -> Any:
        raise NotImplementedError(f"libdevice.{name} has no counterpart in NumPy")

    return run


def _tensor(value: Any) -> Any:
    if isinstance(value, tl.tensor):
        return value
    semantic = getattr(interpreter, "interpreter_semantic", None)
    if semantic is not None:
        return semantic.to_tensor(value)
    return tl.semantic.to_tensor(value, interpreter.interpreter_builder)


def _numbers(handle: Any) -> np.ndarray[Any, Any]:
    data: np.ndarray[Any, Any] = handle.data
    return bfloat16.decoded(data) if handle.dtype.scalar == tl.bfloat16 else data


def _wrapped(data: np.ndarray[Any, Any], kind: Any) -> Any:
    shaped = data.ndim and data.size != 1
    return tl.tensor(interpreter.TensorHandle(data, kind), tl.block_type(kind, list(data.shape)) if shaped else kind)
