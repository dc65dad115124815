"""Built-in: torch.nn.RNN. The tanh RNN with hoisted projection and unbind: the plain loop as it should be written.

    P   = W x + b + c, for all steps at once
    h_t = tanh(P_t + U h_(t-1)),        P_t from P.unbind(0)

Teaches: unbind cuts P into its T slices once; its gradient is one stack of T slices, where P[t] adds up T full-size
    tensors. Backward becomes linear in T, by one word.
When not to use it: for a plain tanh cell nn.RNN is ready; this is the shape for cells that torch does not have.
"""

import torch
from torch import Tensor, nn

TEACHES = "unbind once instead of indexing T times: backward is linear in T again"
BUILTIN = "torch.nn.RNN"
SECOND_ORDER = True
COMPILES = True


class UnbindRNN(nn.Module):
    def __init__(self, inputs: int, hidden: int) -> None:
        super().__init__()
        self.from_input = nn.Linear(inputs, hidden)
        self.from_state = nn.Linear(hidden, hidden)

    def forward(self, x: Tensor) -> Tensor:
        h = x.new_zeros(x.shape[1], self.from_state.out_features)
        states = []
        for p in self.from_input(x).unbind(0):
            h = torch.tanh(p + self.from_state(h))
            states.append(h)
        return torch.stack(states)


rnn = UnbindRNN(3, 5).to(torch.float64)

gradsmith_inputs = {"rnn": lambda: (torch.randn(4, 2, 3, dtype=torch.float64, requires_grad=True),)}
