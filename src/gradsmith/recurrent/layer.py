"""`Recurrent`: a cell becomes a layer with the habits of `nn.RNN`."""

from __future__ import annotations

import copy
from typing import Any, cast
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence
from torch.utils import _pytree as pytree

from gradsmith.native.outside_compile import leave_graph

from .carrying import matching
from .fallback import Step
from .in_graph import scan_in_graph
from .masking import check_lengths
from .packing import Packing
from .plan import Plan
from .scan import plan, repack, scan, scan_noting, scan_rows
from .structure import describe
from .telling import tell_of_loop

# Not attributes: a layer can be copied and pickled, the compiled loops of a plan cannot.
_last_plans: WeakKeyDictionary[nn.Module, Plan] = WeakKeyDictionary()


class Recurrent(nn.Module):
    """Run `cell` over time, in `num_layers` layers and one or both directions.

    The cell is any module with `cell(x_t, state) -> (y_t, state)`, or one of `nn.RNNCell`, `nn.GRUCell`, `nn.LSTMCell`.
    The first layer of the first direction is the given cell itself; further ones are made by `make(input_size)`, or are
    fresh copies of the cell where sizes allow. The `state_dict` of a single layer is that of the cell, unchanged.

    The initial state comes from the caller, from `cell.initial_state(batch)`, or is zeros of `cell.hidden_size`.

    >>> layer = Recurrent(nn.LSTMCell(3, 5))
    >>> y, (h, c) = layer(torch.randn(7, 2, 3))
    >>> y.shape, h.shape
    (torch.Size([7, 2, 5]), torch.Size([2, 5]))
    """

    def __init__(
        self,
        cell: nn.Module,
        *,
        num_layers: int = 1,
        bidirectional: bool = False,
        reverse: bool = False,
        batch_first: bool = False,
        dropout: float = 0.0,
        make: Any = None,
        checkpoint_every: int | None = None,
        backend: str = "auto",
    ) -> None:
        super().__init__()
        if not isinstance(cell, nn.Module):
            raise TypeError(
                f"Recurrent: cell must be an nn.Module, not {type(cell).__name__}; for a function use gradsmith.scan."
            )
        if num_layers < 1:
            raise ValueError(f"Recurrent: num_layers must be at least 1, not {num_layers}.")
        if not 0 <= dropout <= 1:
            raise ValueError(f"Recurrent: dropout must be between 0 and 1, not {dropout}.")
        if bidirectional and reverse:
            raise ValueError("Recurrent: a bidirectional layer already runs in reverse; give one of the two.")
        self.num_layers, self.bidirectional, self.reverse = num_layers, bidirectional, reverse
        self.batch_first, self.dropout = batch_first, dropout
        self.checkpoint_every, self.backend = checkpoint_every, backend
        directions = 2 if bidirectional else 1
        self.single = num_layers * directions == 1
        cells = [cell]
        for number in range(1, num_layers * directions):
            cells.append(_another(cell, make, number // directions, directions))
        self.cells = nn.ModuleList(cells)
        if self.single:
            self._register_state_dict_hook(_without_prefix)
            self.register_load_state_dict_pre_hook(_with_prefix)

    @classmethod
    def from_module(cls, module: nn.Module, *inputs: Any) -> Recurrent:
        """A `Recurrent` with the weights of `module`, which it shares: an nn.RNN, nn.GRU or nn.LSTM, or a hand-written layer.

        A hand-written layer is run on `inputs`, and its cell is the part of it that gives the same results over time (or,
        of two Linear layers, the cell of torch that does). Its output is then `y`, or the last step of `y`. A readout (one part
        of the layer, such as a Linear, between the states and its output) is found, and left to you: `own.readout(layer(x)[0])`.

        >>> lstm = nn.LSTM(3, 5, num_layers=2, batch_first=True)
        >>> layer, x = Recurrent.from_module(lstm), torch.randn(2, 7, 3)
        >>> torch.allclose(layer(x)[0], lstm(x)[0], atol=1e-6)
        True
        """
        if not inputs and not isinstance(module, nn.RNNBase):
            raise ValueError(
                f"Recurrent.from_module: give inputs of {type(module).__name__}, so that results can be compared."
            )
        found: Recurrent = matching(module, inputs, cls).layer
        return found

    @property
    def cell(self) -> nn.Module:
        """The cell of the first layer."""
        return self.cells[0]

    def forward(self, x: Tensor | PackedSequence, state: Any = None, lengths: Tensor | None = None) -> tuple[Any, Any]:
        """(y, last state). One state for one layer and direction, otherwise a list with one state for each."""
        if torch.compiler.is_compiling() and (lengths is not None or isinstance(x, PackedSequence)):
            reason = "the lengths of sequences are only known while it runs"
            return cast(tuple[Any, Any], leave_graph(reason, self.forward, x, state, lengths))
        if isinstance(x, PackedSequence):
            rows, last = self._layers(x.data, state, Packing.of_packed(x), True)
            return repack(rows, x), last
        time_first, batched = self._time_first(x)
        steps, batch = time_first.shape[:2]
        if lengths is not None:
            packing = Packing.of_lengths(check_lengths(lengths, steps, batch, batched, "Recurrent"))
            rows, last = self._layers(packing.rows_of(time_first), state, packing, batched)
            y = packing.padded(rows, steps)
        else:
            y, last = self._layers(time_first, state, None, batched)
        if not batched:
            return y.squeeze(1), pytree.tree_map(lambda leaf: leaf.squeeze(0), last)
        return (y.transpose(0, 1) if self.batch_first else y), last

    def plan(self, x: Tensor | None = None, state: Any = None) -> Plan:
        """How the first layer will run on `x`, and why; without `x`, how it ran when it was last called. Print it.

        >>> layer = Recurrent(nn.GRUCell(3, 5))
        >>> y, h = layer(torch.randn(7, 2, 3))
        >>> print(layer.plan())
        backend: ...
        """
        if x is None:
            if self not in _last_plans:
                raise ValueError("Recurrent.plan: not called yet outside torch.compile; write layer.plan(x).")
            return _last_plans[self]
        time_first, _ = self._time_first(x)
        start = self._start(0, state if self.single else None, time_first, time_first.shape[1], True)
        return plan(step_of(self.cells[0]), time_first, start, backend=self.backend)

    def extra_repr(self) -> str:
        return f"num_layers={self.num_layers}, bidirectional={self.bidirectional}, batch_first={self.batch_first}"

    def _time_first(self, x: Tensor) -> tuple[Tensor, bool]:
        if not isinstance(x, Tensor):
            raise TypeError(f"Recurrent: x must be a tensor or a PackedSequence, not {type(x).__name__}.")
        if x.dim() < 2:
            raise ValueError(
                f"Recurrent: x of shape {describe(x)} has no time dimension; expected (time, batch, features) or (time, features)."
            )
        if x.dim() == 2:
            return x.unsqueeze(1), False
        return (x.transpose(0, 1) if self.batch_first else x), True

    def _start(self, number: int, states: Any, x: Tensor, batch: int, batched: bool) -> Any:
        if states is not None:
            own = states if self.single else states[number]
            return own if batched else pytree.tree_map(lambda leaf: leaf.unsqueeze(0), own)
        cell: Any = self.cells[number]
        if hasattr(cell, "initial_state"):
            return cell.initial_state(batch)
        if not hasattr(cell, "hidden_size"):
            raise ValueError(
                f"Recurrent: no initial state: {type(cell).__name__} has neither initial_state(batch) nor hidden_size; pass state."
            )
        zeros = x.new_zeros(batch, cell.hidden_size)
        return (zeros, zeros.clone()) if isinstance(cell, nn.LSTMCell) else zeros

    def _layers(self, x: Tensor, states: Any, packing: Packing | None, batched: bool) -> tuple[Any, Any]:
        """(y, last state). With a packing, x and y are rows, and states are in the caller's order."""
        directions = 2 if self.bidirectional else 1
        if states is not None and not self.single and len(states) != len(self.cells):
            raise ValueError(
                f"Recurrent: expected {len(self.cells)} states, one per layer and direction, got {len(states)}."
            )
        last: list[Any] = []
        for layer in range(self.num_layers):
            outputs: list[Tensor] = []
            for direction in range(directions):
                number = layer * directions + direction
                start = self._start(number, states, x, x.shape[1] if packing is None else packing.span.batch, batched)
                backwards = self.reverse or direction == 1
                y, end = self._one(self.cells[number], x, start, packing, backwards)
                outputs.append(y)
                last.append(end)
            x = torch.cat(outputs, -1) if directions == 2 else outputs[0]
            if self.dropout and self.training and layer + 1 < self.num_layers:
                x = nn.functional.dropout(x, self.dropout)
        return x, last[0] if self.single else last

    def _one(self, cell: nn.Module, x: Tensor, start: Any, packing: Packing | None, backwards: bool) -> tuple[Any, Any]:
        reason = "checkpoint_every is decided while it runs"
        compiling = torch.compiler.is_compiling()
        if compiling and self.checkpoint_every is None:
            found = scan_in_graph(cell, step_of, x, start, backwards, self.backend)
            if not isinstance(found, str):
                return cast(tuple[Any, Any], found)
            reason = found
        step = step_of(cell)
        if compiling:
            options = {"reverse": backwards, "checkpoint_every": self.checkpoint_every, "backend": self.backend}
            return cast(tuple[Any, Any], leave_graph(reason, scan, step, x, start, (), **options))

        def note(chosen: Plan) -> None:
            tell_of_loop(chosen, cell, self.backend)
            if cell is self.cells[0]:
                _last_plans[self] = chosen

        rest = step, x, start, (), backwards, self.checkpoint_every, self.backend
        return scan_noting(note, *rest) if packing is None else scan_rows(note, packing, *rest)


def step_of(cell: nn.Module) -> Step:
    """torch's own cells return the state only; the output is their h."""
    if isinstance(cell, nn.LSTMCell):

        def lstm(x: Tensor, state: Any) -> Any:
            h, c = cell(x, state)
            return h, (h, c)

        return lstm
    if isinstance(cell, nn.RNNCell | nn.GRUCell):

        def h_only(x: Tensor, h: Tensor) -> Any:
            h = cell(x, h)
            return h, h

        return h_only
    return cell


def _another(cell: Any, make: Any, layer: int, directions: int) -> nn.Module:
    """A cell for a further layer or direction, with parameters of its own."""
    hidden, size = getattr(cell, "hidden_size", None), getattr(cell, "input_size", None)
    wanted = size if layer == 0 else hidden * directions if hidden else None
    if make is not None:
        made: nn.Module = make(wanted)
        return made
    if wanted is not None and wanted != size:
        try:
            fresh: nn.Module = type(cell)(wanted, hidden)
            return fresh
        except TypeError as error:
            raise ValueError(
                f"Recurrent: layer {layer + 1} needs a {type(cell).__name__} for inputs of size {wanted}; pass make=lambda size: ..."
            ) from error
    twin: nn.Module = copy.deepcopy(cell)
    resettable: list[Any] = [m for m in twin.modules() if hasattr(m, "reset_parameters")]
    for module in resettable:
        module.reset_parameters()
    if not resettable and any(True for _ in twin.parameters()):
        raise ValueError(
            f"Recurrent: {type(cell).__name__} cannot be drawn anew for another layer; pass make=lambda size: ..."
        )
    return twin


def _without_prefix(module: Any, state: dict[str, Any], prefix: str, metadata: Any) -> None:
    for key in [k for k in state if k.startswith(f"{prefix}cells.0.")]:
        state[prefix + key[len(prefix) + len("cells.0.") :]] = state.pop(key)


def _with_prefix(module: Any, state: dict[str, Any], prefix: str, *rest: Any) -> None:
    own = {name for name, _ in [*module.cells[0].named_parameters(), *module.cells[0].named_buffers()]}
    for name in own:
        if prefix + name in state:
            state[f"{prefix}cells.0.{name}"] = state.pop(prefix + name)
