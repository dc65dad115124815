"""The many ways to call an operation of torch, brought to the one form of the table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from gradsmith.deriving.node import Node, is_number, value_of
from gradsmith.deriving.refusal import Refused
from gradsmith.deriving.table import SIZES_APART

if TYPE_CHECKING:
    from gradsmith.deriving.graph import Graph

_SAME = {
    "multiply": "mul",
    "subtract": "sub",
    "true_divide": "div",
    "divide": "div",
    "clip": "clamp",
    "clamp_min": "clamp",
    "negative": "neg",
    "absolute": "abs",
    "mm": "matmul",
    "bmm": "matmul",
    "mv": "matmul",
    "dot": "matmul",
    "vdot": "matmul",
    "inner": "matmul",
    "swapaxes": "transpose",
    "swapdims": "transpose",
    "t": "mT",
    "adjoint": "mT",
    "view": "reshape",
    "concat": "cat",
    "concatenate": "cat",
    "broadcast_to": "expand",
    "moveaxis": "movedim",
    "expit": "sigmoid",
    "gammaln": "lgamma",
    "psi": "digamma",
    "arctan": "atan",
    "arctan2": "atan2",
    "arcsin": "asin",
    "arccos": "acos",
    "arctanh": "atanh",
    "arcsinh": "asinh",
    "arccosh": "acosh",
    "bitwise_and": "and",
    "bitwise_or": "or",
    "bitwise_xor": "xor",
    "bitwise_not": "invert",
    "fix": "trunc",
    "ravel": "flatten",
    "log_sigmoid": "logsigmoid",
    "ger": "outer",
    "inverse": "inv",
    "less": "lt",
    "less_equal": "le",
    "greater": "gt",
    "greater_equal": "ge",
    "not_equal": "ne",
    "sgn": "sign",
    "take_along_axis": "take_along_dim",
}
_PARAMETER = {"axis": "dim", "axes": "dims", "keepdims": "keepdim", "size": "shape", "indices": "index"}
# What torch calls the next argument of an operation that the table names otherwise.
_IN_ORDER = (
    "input",
    "self",
    "other",
    "exponent",
    "tensor",
    "value",
    "tensors",
    "index",
    "vec2",
    "mat2",
    "src",
    "source",
    "pad",
)
# Arguments that change neither the value nor the derivative, at these values.
_SILENT = {
    "inplace": False,
    "out": None,
    "_stacklevel": None,
    "non_blocking": False,
    "copy": False,
    "dtype": None,
    "stable": False,
}
_SILENT |= {"memory_format": None, "training": True, "layout": None, "pin_memory": False, "requires_grad": False}
_SILENT |= {"return_indices": False}
_DTYPES = {"float": torch.float32, "double": torch.float64, "half": torch.float16, "bfloat16": torch.bfloat16}
_DTYPES |= {"long": torch.int64, "int": torch.int32, "bool": torch.bool}


def bound(graph: Graph, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[str, tuple[Any, ...]]:
    """(operation of the table, its full arguments); refused where an argument has no rule."""
    called = spoken(name)
    name = name.removeprefix("linalg_").removeprefix("special_").removeprefix("_").removesuffix("_")
    name, args, kwargs = _rewritten(graph, name, args, dict(kwargs))
    name = _SAME.get(name, name)
    operation = graph.operations.get(name)
    if operation is None:
        raise Refused(
            f"`{called}` has no derivative rule.", "Derive the parts around it, or write it with other operations."
        )
    if name in SIZES_APART and len(args) > 1 and not isinstance(args[1], (tuple, list)) and not _is_shape(args[1]):
        args = (args[0], tuple(args[1:]))
    if len(args) > len(operation.params):
        raise Refused(f"`{name}` is called with an argument that has no rule.")
    given = dict(zip(operation.params, args))
    free = [p for p in operation.params if p not in given]
    for key, value in kwargs.items():
        param = key if key in operation.params else _PARAMETER.get(key, key)
        if param not in free and key in _IN_ORDER:
            param = free[0] if free else key
        if param in free:
            given[param] = value
            free.remove(param)
        elif not (key in _SILENT and (value is _SILENT[key] or value == _SILENT[key] or key == "_stacklevel")):
            raise Refused(f"`{name}` is called with {key}={_shown(value)}, which has no rule.")
    for param in free:
        if param not in operation.defaults:
            raise Refused(f"`{name}` is called without {param}.")
        given[param] = operation.defaults[param]
    dim = given.get("dim")
    if operation.kind == "r" and isinstance(dim, (tuple, list)) and len(dim) == 1:
        given["dim"] = dim[0]
    return name, tuple(_frozen(given[p]) for p in operation.params)


def spoken(name: str) -> str:
    """The name of an operation as the source has it.

    >>> spoken("fft_fft")
    'torch.fft.fft'
    """
    owner, _, rest = name.partition("_")
    return f"torch.{owner}.{rest}" if owner in ("fft", "linalg", "special") and rest else name


def _rewritten(
    graph: Graph, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[str, Any, dict[str, Any]]:
    """Spellings whose arguments differ from the table's."""
    first: Any = args[0] if args else None
    if name == "where" and len(args) == 1 and not kwargs:
        return "nonzero", args, {"as_tuple": True}
    if name in ("add", "sub", "subtract") and "alpha" in kwargs:
        alpha = kwargs.pop("alpha")
        first = kwargs.pop("input") if "input" in kwargs else first
        other = kwargs.pop("other") if "other" in kwargs else args[-1]
        return name, (first, other if is_number(alpha, 1) else graph.arith("mul", alpha, other)), kwargs
    if name in ("div", "divide", "true_divide") and kwargs.get("rounding_mode") is None:
        kwargs.pop("rounding_mode", None)
    if name in ("rsub", "_rsub__"):
        return "sub", (args[1], first), kwargs
    if name in _DTYPES and len(args) == 1:
        return "to", (first, _DTYPES[name]), {}
    if name == "type" and len(args) + len(kwargs) == 2:
        return "to", (first, args[1] if len(args) > 1 else kwargs["dtype"]), {}
    if name in ("trapz", "cumtrapz"):
        return {"trapz": "trapezoid", "cumtrapz": "cumulative_trapezoid"}[name], args, kwargs
    if name in ("div", "divide", "true_divide") and kwargs.get("rounding_mode") is not None:
        quotient = graph.call("div", (first, args[1] if len(args) > 1 else kwargs["other"]), {})
        return {"floor": "floor", "trunc": "trunc"}[kwargs["rounding_mode"]], (quotient,), {}
    if name == "type_as":
        return "to", (first, args[1].dtype), {}
    if name == "to":
        return "to", (first, _target_dtype(args[1:], kwargs)), {}
    if name in ("clamp_min", "clamp_max"):
        return (
            "clamp",
            (first,),
            {"min" if name == "clamp_min" else "max": args[1] if len(args) > 1 else kwargs.popitem()[1]},
        )
    if name == "unfold" and len(args) + len(kwargs) == 4 and isinstance(args[0], Node) and is_number(value_of(args[1])):
        return "unfold_dimension", args, kwargs
    if name in ("avg_pool1d", "avg_pool2d", "avg_pool3d") and len(args) > 2 and args[2] == ():
        args = (*args[:2], None, *args[3:])
    if name in ("expand_as", "view_as", "reshape_as"):
        return name.removesuffix("_as"), (first, graph.shape_of(args[1])), {}
    if name in ("softmax", "log_softmax", "softmin", "sum", "mean", "prod", "cumsum", "cumprod", "norm", "vector_norm"):
        dtype = kwargs.pop("dtype", None)
        if dtype is not None:
            return _rewritten(graph, name, (graph.call("to", (first, dtype), {}), *args[1:]), kwargs)
    if name in ("norm", "vector_norm"):
        return _norm(name, args, kwargs)
    if name in ("var", "std"):
        return _spread(name, args, kwargs)
    if name in ("max", "min"):
        return _extreme(name, args, kwargs)
    if name in ("mean", "sum") and len(args) > 2 and not isinstance(args[2], bool):
        return name, (first, tuple(args[1:])), kwargs
    if name == "split_with_sizes":
        return "split", args, kwargs
    if name == "inner" and any(len(a.dims) > 1 for a in args):
        return "matmul", (first, args[1].mT), {}
    if name in ("t", "adjoint") and len(first.dims) < 2:
        return "reshape", (first, graph.shape_of(first)), {}
    if name == "gather" or name == "index_select" or name == "take_along_dim":
        kwargs.pop("sparse_grad", None)
    if name == "einsum":
        operands = args[1:]
        if len(operands) == 1 and isinstance(operands[0], (tuple, list)):
            operands = tuple(operands[0])
        return name, (_explicit(first), tuple(operands)), kwargs
    if name == "cross" and kwargs.get("dim", -1) is None:
        kwargs.pop("dim")
    if name == "embedding" and len(args) > 2:
        args = args[:2] if args[2] in (None, -1) else args
    if name == "dropout":
        raise Refused("`dropout` draws random numbers.", "Draw the mask outside and pass it as an argument.")
    return name, args, kwargs


def _explicit(equation: str) -> str:
    """The equation with what einsum leaves out: without an arrow, the labels that stand once, in order of the alphabet."""
    equation = equation.replace(" ", "")
    if "->" in equation:
        return equation
    labels = equation.replace("...", "").replace(",", "")
    return (
        equation
        + "->"
        + ("..." if "..." in equation else "")
        + "".join(sorted(c for c in set(labels) if labels.count(c) == 1))
    )


def _norm(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[str, Any, dict[str, Any]]:
    names = ("x", "ord", "dim", "keepdim")
    given = dict(zip(names, args)) | {"ord" if k == "p" else _PARAMETER.get(k, k): v for k, v in kwargs.items()}
    given.pop("input", None)
    order, dim = given.get("ord", 2), given.get("dim")
    rank = len(given["x"].dims)
    if order in (None, "fro") or (isinstance(order, str) and order == "fro"):
        order = 2
    elif name == "norm" and dim is not None and isinstance(dim, (tuple, list)) and len(dim) == 2 and "p" not in kwargs:
        raise Refused(f"the matrix norm of order {_shown(order)} has no rule.")
    if isinstance(order, str):
        raise Refused(f"the norm {order!r} has no rule.")
    if dim is None and rank > 1 and name == "norm" and "ord" in kwargs:
        raise Refused(f"the matrix norm of order {_shown(order)} has no rule.")
    given["ord"] = order
    return "vector_norm", (given.pop("x"),), {k: v for k, v in given.items() if v is not None}


def _spread(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[str, Any, dict[str, Any]]:
    """var and std: `unbiased` is `correction`, and may stand where `dim` stands."""
    rest = list(args[1:])
    given: dict[str, Any] = {_PARAMETER.get(k, k): v for k, v in kwargs.items()}
    if rest and isinstance(rest[0], bool):
        given["unbiased"] = rest.pop(0)
    for position, value in enumerate(rest):
        given["dim" if position == 0 else "unbiased" if position == 1 else "keepdim"] = value
    if "unbiased" in given:
        given["correction"] = int(given.pop("unbiased"))
    if given.get("correction", 1) is None:
        given.pop("correction")
    return name, (args[0],), given


def _extreme(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[str, Any, dict[str, Any]]:
    """x.max() is amax, torch.max(a, b) is maximum, x.max(dim) gives values and indices."""
    other = args[1] if len(args) > 1 else kwargs.get("other")
    if isinstance(other, Node) and other.is_tensor:
        return f"{name}imum", (args[0], other), {}
    if len(args) == 1 and not kwargs:
        return f"a{name}", args, {}
    return name, args, kwargs


def _target_dtype(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The dtype that `x.to(...)` asks for; None where only the device changes."""
    for value in (*args, *(v for k, v in kwargs.items() if k in ("dtype", "other"))):
        if isinstance(value, Node) and value.is_tensor:
            return value.dtype
        if (isinstance(value, Node) and value.op == "dtype") or isinstance(value, torch.dtype):
            return value
    return None


def _is_shape(value: Any) -> bool:
    return isinstance(value, Node) and value.op == "shape"


def _frozen(value: Any) -> Any:
    return tuple(_frozen(v) for v in value) if isinstance(value, (list, torch.Size)) else value


def _shown(value: Any) -> str:
    return repr(value_of(value)) if not (isinstance(value, Node) and value.is_tensor) else "a tensor"
