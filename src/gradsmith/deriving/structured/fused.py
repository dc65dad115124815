"""Kernels that compute a derivative in one pass, as autograd itself calls them: for `--fast`, where speed comes before reading."""

from __future__ import annotations

from typing import Any

from gradsmith.deriving.node import Node, value_of
from gradsmith.deriving.structured.registry import Pairs

# What a kernel is given: the gradient g, the input x, the result y, and the arguments of the call by name.
_KERNELS = {
    "softmax": ("_softmax_backward_data", "g y dim dtype"),
    "log_softmax": ("_log_softmax_backward_data", "g y dim dtype"),
    "tanh": ("tanh_backward", "g y"),
    "sigmoid": ("sigmoid_backward", "g y"),
    "relu": ("threshold_backward", "g x 0"),
    "silu": ("silu_backward", "g x"),
    "gelu": ("gelu_backward", "g x"),
    "softplus": ("softplus_backward", "g x beta threshold"),
}


def fused(y: Node, g: Any) -> Pairs | None:
    """The gradient from one kernel, where there is one for the call as it stands."""
    operation = y.graph.operations.get(y.op)
    if operation is None or y.op not in _KERNELS or not isinstance(g, Node):
        return None
    x: Node = y.args[0]
    if y.op == "gelu" and value_of(operation.argument(y.args, "approximate")) != "none":
        return None
    name, wanted = _KERNELS[y.op]
    known = {"g": g, "x": x, "y": y, "dtype": x.dtype, **dict(zip(operation.params[1:], y.args[1:]))}
    arguments = tuple(0 if word == "0" else known[word] for word in wanted.split())
    made = y.graph.make("create", f"torch.ops.aten.{name}", arguments, ())
    made.dims = y.graph.make("mul", g, y).dims
    return iter([(x, made)])
