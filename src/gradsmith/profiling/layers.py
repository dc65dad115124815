"""Recurrent remedies: the built-in layer for an exact match, with the mapping of the weights, and gradsmith's engine."""

from __future__ import annotations

import contextlib
import functools
import types
import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

from gradsmith.profiling.bench import Bench
from gradsmith.profiling.clock import Ratio, interleaved, ratio
from gradsmith.source.loaded import text_of
from gradsmith.source.stepped import SCAN, with_scan

Way = tuple[str, Callable[..., Any]]
_LAYERS: dict[type[nn.Module], type[nn.RNNBase]] = {nn.RNNCell: nn.RNN, nn.GRUCell: nn.GRU, nn.LSTMCell: nn.LSTM}


def layer_remedies(bench: Bench) -> list[Way]:
    """The layers that may stand in for a module with one cell; whether they do is found by comparing results."""
    module = bench.target.module
    if module is None:
        return []
    ways: list[Way] = []
    for name, cell in module.named_children():
        layer = _LAYERS.get(type(cell))
        if layer is not None:
            ways += _from_cell(name, cell, layer)
    ways += _from_linears(module)
    return ways


def weight_mapping(cell: str, layer: str) -> str:
    """The lines that carry trained weights over, for the report."""
    return "; ".join(f"{layer}.{name}_l0 = {cell}.{name}" for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"))


def _from_cell(name: str, cell: Any, layer: type[nn.RNNBase]) -> list[Way]:
    weights = [cell.weight_ih, cell.weight_hh] + ([cell.bias_ih, cell.bias_hh] if cell.bias else [])
    title = f"nn.{layer.__name__} with the weights of self.{name}"
    make: Callable[..., nn.RNNBase] = layer
    built = make(cell.input_size, cell.hidden_size, bias=cell.bias, **_mode(cell))
    return _variants(title, built.to(weights[0].device, weights[0].dtype), weights)


def _from_linears(module: nn.Module) -> list[Way]:
    """Two Linear layers, one of them square: a tanh RNN written by hand."""
    linears = [m for m in module.children() if isinstance(m, nn.Linear)]
    pairs = [(a, b) for a in linears for b in linears if a is not b and b.in_features == b.out_features]
    ways: list[Way] = []
    for inner, hidden in pairs:
        if inner.out_features != hidden.out_features:
            continue
        size = hidden.out_features
        zero = torch.zeros(size, dtype=hidden.weight.dtype, device=hidden.weight.device)
        biases = [m.bias if m.bias is not None else zero for m in (inner, hidden)]
        for kind in ("tanh", "relu"):
            built = nn.RNN(inner.in_features, size, nonlinearity=kind).to(hidden.weight.device, hidden.weight.dtype)
            ways += _variants(f"nn.RNN({kind})", built, [inner.weight, hidden.weight, *biases])
    return ways


def _variants(title: str, layer: Any, weights: list[Tensor]) -> list[Way]:
    names = list(layer._all_weights[0])

    def states(x: Tensor, *state: Any) -> Any:
        # A cell's state is (batch, size), or two of them; a layer's has a dimension for its layers in front.
        own = tuple(pytree.tree_map(lambda s: s.unsqueeze(0), one) for one in state)
        out, _ = torch.func.functional_call(layer, dict(zip(names, weights)), (x, *own))
        return out

    def call(*args: Any) -> Any:
        return states(*args)

    def last(*args: Any) -> Any:
        return states(*args)[-1]

    def batch_first(x: Tensor, *state: Any) -> Any:
        return states(x.transpose(0, 1), *state).transpose(0, 1)

    def batch_first_last(x: Tensor, *state: Any) -> Any:
        return states(x.transpose(0, 1), *state)[-1]

    return [
        (title, call),
        (f"{title}, last state", last),
        (f"{title}, batch_first=True", batch_first),
        (f"{title}, batch_first=True, last state", batch_first_last),
    ]


def _mode(cell: Any) -> dict[str, str]:
    return {"nonlinearity": cell.nonlinearity} if isinstance(cell, nn.RNNCell) else {}


def engine_ways(bench: Bench) -> list[Way]:
    """gradsmith's own engine for the cell that a module runs over time, found by its results; none where no part of it is one."""
    module = bench.target.module
    if module is None:
        return []
    from gradsmith.recurrent import Recurrent
    from gradsmith.recurrent.carrying import matching

    call = bench.call()
    try:
        found = matching(module, call.args, Recurrent)
    except Exception:  # whatever the module does with other inputs: it has no cell that we can run
        return []
    layer, names = found.layer, {part: name for name, part in module.named_modules()}
    name = names.get(layer.cell, "")
    cell = f"self.{name}" if name else f"nn.{type(layer.cell).__name__}(...)"
    first = ", batch_first=True" if layer.batch_first else ""
    last = ", last step" if found.last else ""
    readout = "" if found.readout is None else f", then self.{names[found.readout]}"
    return [(f"gs.Recurrent({cell}{first}){last}{readout}", found)]


def scan_ways(bench: Bench) -> list[Way]:
    """The function with its own loop over time run by `gs.scan`; none where its text has no such loop, or not one that compiles."""
    module = bench.target.module
    function = bench.target.original if module is None else type(module).forward
    if not isinstance(function, types.FunctionType):
        return []
    call = bench.call()
    for text in with_scan(text_of(function)):
        way = _made(function, text, bench.target.name)
        if module is not None:
            way = functools.partial(way, module)
        with warnings.catch_warnings(), contextlib.suppress(Exception):  # then this loop is none over time
            warnings.filterwarnings("error", ".* runs as a Python loop")
            way(*call.args, **call.kwargs)
            return [("gs.scan of its loop", way)]
    return []


def _made(function: types.FunctionType, text: str, name: str) -> Callable[..., Any]:
    """A function in the place of another: it sees what that sees."""
    from gradsmith.recurrent import scan

    space: dict[str, Any] = {**function.__globals__, SCAN: scan}
    for free, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
        with contextlib.suppress(ValueError):  # not assigned yet
            space[free] = cell.cell_contents
    exec(compile(text, f"<{name} with gs.scan>", "exec"), space)
    made: types.FunctionType = space[function.__name__]
    made.__defaults__, made.__kwdefaults__ = function.__defaults__, function.__kwdefaults__
    return made


def slower_than_layer(bench: Bench, way: Callable[..., Any], budget: float = 0.4) -> Ratio:
    """How many times slower the module is than the layer, measured in turns."""
    mine, theirs = interleaved([bench, bench.with_function(way)], budget)
    return ratio(mine.work, theirs.work)


def matching(bench: Bench) -> Way | None:
    """The built-in layer that computes exactly what this module computes, if one does."""
    from gradsmith.profiling.remedies import equivalent

    for name, way in layer_remedies(bench):
        try:
            if equivalent(bench, bench.with_function(way)):
                return name, way
        except Exception:  # other arguments, other shapes: simply not this layer
            continue
    return None
