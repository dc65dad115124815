"""Ready cells: `cell(x, state) -> (y, state)` in plain PyTorch. Read one, copy it, change it: it stays as fast."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

Pair = tuple[Tensor, Tensor]


class _Gates(nn.Module):
    """Weights of `gates` blocks of size `hidden_size`, drawn as torch draws those of `nn.RNN`."""

    def __init__(self, input_size: int, hidden_size: int, gates: int, bias: bool = True) -> None:
        super().__init__()
        self.input_size, self.hidden_size = input_size, hidden_size
        self.weight_ih = nn.Parameter(torch.empty(gates * hidden_size, input_size))
        self.weight_hh = nn.Parameter(torch.empty(gates * hidden_size, hidden_size))
        self.bias = nn.Parameter(torch.empty(gates * hidden_size)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        bound = 1 / math.sqrt(self.hidden_size)
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -bound, bound)

    def gates(self, x: Tensor, h: Tensor) -> Tensor:
        return nn.functional.linear(x, self.weight_ih, self.bias) + nn.functional.linear(h, self.weight_hh)

    def zeros(self, batch: int) -> Tensor:
        return self.weight_ih.new_zeros(batch, self.hidden_size)


class TanhRNNCell(_Gates):
    """`h = tanh(W x + U h + b)`.

    >>> y, h = TanhRNNCell(3, 5)(torch.zeros(2, 3), torch.zeros(2, 5))
    """

    def __init__(self, input_size: int, hidden_size: int) -> None:
        super().__init__(input_size, hidden_size, 1)

    def initial_state(self, batch: int) -> Tensor:
        return self.zeros(batch)

    def forward(self, x: Tensor, h: Tensor) -> Pair:
        h = torch.tanh(self.gates(x, h))
        return h, h


class ReluRNNCell(TanhRNNCell):
    """`h = relu(W x + U h + b)`.

    >>> y, h = ReluRNNCell(3, 5)(torch.zeros(2, 3), torch.zeros(2, 5))
    """

    def forward(self, x: Tensor, h: Tensor) -> Pair:
        h = torch.relu(self.gates(x, h))
        return h, h


class LSTMCell(_Gates):
    """Long short-term memory; the state is `(h, c)`, gates in the order of `nn.LSTM` (input, forget, cell, output).

    >>> y, (h, c) = LSTMCell(3, 5)(torch.zeros(2, 3), (torch.zeros(2, 5), torch.zeros(2, 5)))
    """

    def __init__(self, input_size: int, hidden_size: int) -> None:
        super().__init__(input_size, hidden_size, 4)

    def initial_state(self, batch: int) -> Pair:
        return self.zeros(batch), self.zeros(batch)

    def forward(self, x: Tensor, state: Pair) -> tuple[Tensor, Pair]:
        h, c = state
        i, f, g, o = self.gates(x, h).chunk(4, -1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        h = torch.sigmoid(o) * torch.tanh(c)
        return h, (h, c)


class GRUCell(_Gates):
    """Gated recurrent unit as in `nn.GRU`: the reset gate acts after the recurrent product.

    >>> y, h = GRUCell(3, 5)(torch.zeros(2, 3), torch.zeros(2, 5))
    """

    def __init__(self, input_size: int, hidden_size: int) -> None:
        super().__init__(input_size, hidden_size, 3)
        self.bias_hh = nn.Parameter(torch.zeros(3 * hidden_size))

    def initial_state(self, batch: int) -> Tensor:
        return self.zeros(batch)

    def forward(self, x: Tensor, h: Tensor) -> Pair:
        x_r, x_z, x_n = nn.functional.linear(x, self.weight_ih, self.bias).chunk(3, -1)
        h_r, h_z, h_n = nn.functional.linear(h, self.weight_hh, self.bias_hh).chunk(3, -1)
        n = torch.tanh(x_n + torch.sigmoid(x_r + h_r) * h_n)
        z = torch.sigmoid(x_z + h_z)
        h = n + z * (h - n)
        return h, h


class PeepholeLSTMCell(LSTMCell):
    """LSTM whose gates also see the cell state, through one weight per unit.

    >>> y, (h, c) = PeepholeLSTMCell(3, 5)(torch.zeros(2, 3), (torch.zeros(2, 5), torch.zeros(2, 5)))
    """

    def __init__(self, input_size: int, hidden_size: int) -> None:
        super().__init__(input_size, hidden_size)
        self.peephole = nn.Parameter(torch.zeros(3, hidden_size))

    def forward(self, x: Tensor, state: Pair) -> tuple[Tensor, Pair]:
        h, c = state
        i, f, g, o = self.gates(x, h).chunk(4, -1)
        c_new = torch.sigmoid(f + self.peephole[1] * c) * c + torch.sigmoid(i + self.peephole[0] * c) * torch.tanh(g)
        h = torch.sigmoid(o + self.peephole[2] * c_new) * torch.tanh(c_new)
        return h, (h, c_new)


class LayerNormLSTMCell(LSTMCell):
    """LSTM with layer norm on both products and on the cell state.

    >>> y, (h, c) = LayerNormLSTMCell(3, 5)(torch.zeros(2, 3), (torch.zeros(2, 5), torch.zeros(2, 5)))
    """

    def __init__(self, input_size: int, hidden_size: int) -> None:
        super().__init__(input_size, hidden_size)
        self.norm_x, self.norm_h = nn.LayerNorm(4 * hidden_size), nn.LayerNorm(4 * hidden_size)
        self.norm_c = nn.LayerNorm(hidden_size)

    def forward(self, x: Tensor, state: Pair) -> tuple[Tensor, Pair]:
        h, c = state
        z_x = self.norm_x(nn.functional.linear(x, self.weight_ih, self.bias))
        i, f, g, o = (z_x + self.norm_h(nn.functional.linear(h, self.weight_hh))).chunk(4, -1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        h = torch.sigmoid(o) * torch.tanh(self.norm_c(c))
        return h, (h, c)


class MinGRUCell(nn.Module):
    """minGRU: gate and candidate depend on x alone, so that the state is a linear recurrence.

    >>> y, h = MinGRUCell(3, 5)(torch.zeros(2, 3), torch.zeros(2, 5))
    """

    def __init__(self, input_size: int, hidden_size: int) -> None:
        super().__init__()
        self.input_size, self.hidden_size = input_size, hidden_size
        self.project = nn.Linear(input_size, 2 * hidden_size)

    def initial_state(self, batch: int) -> Tensor:
        return self.project.weight.new_zeros(batch, self.hidden_size)

    def forward(self, x: Tensor, h: Tensor) -> Pair:
        z, candidate = self.project(x).chunk(2, -1)
        z = torch.sigmoid(z)
        h = (1 - z) * h + z * candidate
        return h, h
