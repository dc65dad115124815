"""The weights of a layer that exists, in a `Recurrent`: of `nn.RNN`, `nn.GRU`, `nn.LSTM`, or of a module with a loop of its own.

Parameters are shared, not copied: an optimizer that has them keeps them, and so does a checkpoint of the old layer.
Which layer a hand-written module is cannot be read off its parameters, so every candidate is run and compared.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

_CELLS: dict[type[nn.RNNBase], type[nn.RNNCellBase]] = {nn.RNN: nn.RNNCell, nn.GRU: nn.GRUCell, nn.LSTM: nn.LSTMCell}
_GATES = {1: nn.RNNCell, 3: nn.GRUCell, 4: nn.LSTMCell}
_WEIGHTS = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
_NO_CELLS = (nn.Linear, nn.RNNBase, nn.ModuleList, nn.ModuleDict, nn.Sequential, nn.ParameterList, nn.ParameterDict)


def arguments_of(layer: nn.RNNBase) -> tuple[nn.Module, dict[str, Any]]:
    """The first cell and the options of the `Recurrent` that computes what `layer` does."""
    kind = next((cell for base, cell in _CELLS.items() if isinstance(layer, base)), None)
    if kind is None or layer.proj_size:
        what = f"proj_size={layer.proj_size}" if kind is not None else type(layer).__name__
        raise ValueError(
            f"Recurrent.from_module: {what} has no cell in torch; write one and pass it to gs.Recurrent(cell)."
        )
    numbers = iter(range(layer.num_layers * (2 if layer.bidirectional else 1)))

    def make(_: Any) -> nn.Module:
        return _cell_with(kind, [getattr(layer, name) for name in layer._all_weights[next(numbers)]], layer)

    shape = {"num_layers": layer.num_layers, "bidirectional": layer.bidirectional, "batch_first": layer.batch_first}
    return make(None), {**shape, "dropout": layer.dropout, "make": make}


def _cell_with(kind: Any, weights: list[Any], like: Any = None, mode: str = "tanh") -> nn.Module:
    """A cell of torch whose parameters are these tensors."""
    first, second = weights[:2]
    mode = getattr(like, "nonlinearity", mode)
    extra = {"nonlinearity": mode} if kind is nn.RNNCell else {}
    cell: nn.Module = kind(first.shape[1], second.shape[1], bias=len(weights) > 2, device="meta", **extra)
    for name, weight in zip(_WEIGHTS, weights):
        setattr(cell, name, weight if isinstance(weight, nn.Parameter) else nn.Parameter(weight, requires_grad=False))
    return cell


def cells_in(module: nn.Module) -> Iterator[tuple[str, nn.Module]]:
    """Cells that the loop of `module` may run: its parts, and torch's cells with the weights of two of its Linears."""
    for name, part in module.named_modules():
        if name and not isinstance(part, _NO_CELLS) and not type(part).__module__.startswith("torch.nn.modules.act"):
            yield f"self.{name}", part
    linears = [(name, part) for name, part in module.named_modules() if isinstance(part, nn.Linear)]
    for one, inner in linears:
        for other, hidden in linears:
            gates, rest = divmod(hidden.out_features, hidden.in_features)
            if inner is hidden or inner.out_features != hidden.out_features or rest or gates not in _GATES:
                continue
            weights = [inner.weight, hidden.weight]
            if inner.bias is not None or hidden.bias is not None:
                weights += [part.bias if part.bias is not None else _zeros(hidden) for part in (inner, hidden)]
            for mode in ("tanh", "relu") if gates == 1 else ("",):
                kind = _GATES[gates].__name__
                title = f"nn.{kind} with the weights of self.{one} and self.{other}"
                yield f"{title}{f' ({mode})' if mode else ''}", _cell_with(_GATES[gates], weights, None, mode)


def _zeros(hidden: nn.Linear) -> Tensor:
    return torch.zeros(hidden.out_features, dtype=hidden.weight.dtype, device=hidden.weight.device)


@dataclass(frozen=True)
class Carried:
    """A layer that computes what a module does: all of it, or all but its readout."""

    layer: Any
    last: bool
    """The module returns the last step alone."""
    readout: nn.Module | None = None
    """A part of the module through which the states go before they are returned."""

    def __call__(self, *inputs: Any) -> Any:
        return self.ending(self.layer(*inputs)[0])

    def ending(self, y: Any) -> Any:
        """What the module makes of the states."""
        y = (y[:, -1] if self.layer.batch_first else y[-1]) if self.last else y
        return y if self.readout is None else self.readout(y)


def matching(module: nn.Module, inputs: tuple[Any, ...], make: Any) -> Carried:
    """The first of `make(cell, batch_first=...)` that returns what `module` returns for `inputs`, as y or its last step.

    The module may have one readout: a part of it that makes its result of the states, all steps at once or one by one.
    """
    if isinstance(module, nn.RNNBase):
        first, options = arguments_of(module)
        return Carried(make(first, **options), last=False)
    x, start = inputs[0], inputs[1:]
    with torch.no_grad():
        wanted = _tensor_in(module(*inputs))
        for _, cell in cells_in(module):
            for batch_first in (False, True):
                with contextlib.suppress(Exception):  # other arguments, other shapes: simply not this cell
                    layer = make(cell, batch_first=batch_first, backend="loop")
                    y, _ = layer(x, *start)
                    for readout in (None, *(part for part in module.children() if part is not cell)):
                        for last in (False, True):
                            found = Carried(layer, last, readout)
                            if _gives(found, y, wanted):
                                layer.backend = "auto"
                                return found
    raise ValueError(
        f"Recurrent.from_module: no part of {type(module).__name__} gives its results as a cell. Move the body of its loop "
        f"into a module with forward(x_t, state) -> (y_t, state), and pass that to gs.Recurrent."
    )


def _tensor_in(result: Any) -> Tensor | None:
    return next((leaf for leaf in pytree.tree_leaves(result) if isinstance(leaf, Tensor)), None)


def _gives(found: Carried, y: Any, wanted: Tensor | None) -> bool:
    with contextlib.suppress(Exception):  # a part that does not take states
        return _close(found.ending(y), wanted)
    return False


def _close(found: Any, wanted: Tensor | None) -> bool:
    if wanted is None or not isinstance(found, Tensor) or found.shape != wanted.shape or not bool(found.any()):
        return False
    return torch.allclose(found, wanted, rtol=1e-3, atol=1e-5 * float(wanted.abs().max()))
