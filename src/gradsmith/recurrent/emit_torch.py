"""Stage 3 in torch operations: what happens once, hoisted or after the loop; and, where there is no C, the step itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, fx

_LARGEST_SIZE = 1 << 40
_NOTHING: Mapping[Any, Callable[..., Tensor]] = {}
Function = Callable[[int, Sequence[Tensor]], tuple[Tensor, ...]]


def emit_function(
    nodes: Sequence[fx.Node], inputs: Sequence[fx.Node], outputs: Sequence[fx.Node], traced_rows: int,
    instead: Mapping[Any, Callable[..., Tensor]] = _NOTHING, dtypes: Mapping[Any, Any] = _NOTHING,
) -> Function:  # fmt: skip
    """A function `f(rows, inputs) -> outputs` that runs `nodes`; twice as fast as walking the graph at every step.

    `instead` has functions to call in place of torch's operations, `dtypes` what to compute in instead of a dtype.
    """
    names = {node: f"a{i}" for i, node in enumerate(inputs)}
    constants: dict[str, Any] = {}

    def text(argument: Any) -> str:
        if isinstance(argument, fx.Node):
            return names[argument]
        if isinstance(argument, list | tuple):
            return "[" + ", ".join(text(item) for item in argument) + "]"
        if type(argument) is int and 0 < argument < _LARGEST_SIZE and argument % traced_rows == 0:
            return f"{argument // traced_rows} * rows"
        if isinstance(argument, bool | int | str | type(None)):
            return repr(argument)
        name = f"c{len(constants)}"
        constants[name] = dtypes.get(argument, argument) if isinstance(argument, torch.dtype) else argument
        return name

    unpacked = f"    {', '.join(names[n] for n in inputs)}, = inputs" if inputs else "    pass"
    lines = ["def step(rows, inputs):", unpacked]
    for number, node in enumerate(nodes):
        target: Any = node.target
        if target is torch.ops.aten.view.default:
            target = torch.ops.aten.reshape.default
        constants[f"op{number}"] = instead.get(target, target)
        arguments = [text(a) for a in node.args] + [f"{k}={text(v)}" for k, v in node.kwargs.items()]
        names[node] = f"v{number}"
        lines.append(f"    v{number} = op{number}({', '.join(arguments)})")
    lines.append(f"    return ({', '.join(names[n] for n in outputs)}{',' if outputs else ''})")
    space: dict[str, Any] = dict(constants)
    exec("\n".join(lines), space)
    function: Function = space["step"]
    return function
