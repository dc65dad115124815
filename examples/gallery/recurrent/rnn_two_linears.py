"""Built-in: torch.nn.RNN. A tanh RNN as people first write it: two Linear layers per step.

    h_t = tanh(W x_t + b + U h_(t-1) + c)           (time first: x is T x B x I)
    the gradient is autograd's, through every step

Teaches: it is right, and slow twice over. W x_t needs no state, and is yet computed in T small products; and x[t]
    puts a full-size zero tensor into the gradient of x for every step, so backward is quadratic in T.
When not to use it: for anything long; compare rnn_hoisted.py, rnn_unbind.py and rnn_bptt.py, which give the same
    result.
"""

import torch
from torch import Tensor, nn

TEACHES = "the plain loop: right, and slow twice over (a small product per step, a quadratic backward of x[t])"
BUILTIN = "torch.nn.RNN"
SECOND_ORDER = True
COMPILES = True


class TwoLinearRNN(nn.Module):
    def __init__(self, inputs: int, hidden: int) -> None:
        super().__init__()
        self.from_input = nn.Linear(inputs, hidden)
        self.from_state = nn.Linear(hidden, hidden)

    def forward(self, x: Tensor) -> Tensor:
        h = x.new_zeros(x.shape[1], self.from_state.out_features)
        states = []
        for t in range(x.shape[0]):
            h = torch.tanh(self.from_input(x[t]) + self.from_state(h))
            states.append(h)
        return torch.stack(states)


rnn = TwoLinearRNN(3, 5).to(torch.float64)

gradsmith_inputs = {"rnn": lambda: (torch.randn(4, 2, 3, dtype=torch.float64, requires_grad=True),)}
