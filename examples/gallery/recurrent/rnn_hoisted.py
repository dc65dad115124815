"""Built-in: torch.nn.RNN. The tanh RNN with the input projection hoisted out of the loop.

    P   = W x + b + c, for all steps at once        (one large matrix product instead of T small ones)
    h_t = tanh(P_t + U h_(t-1))

Teaches: whatever does not depend on the state belongs before the loop. But P[t] still costs a full-size zero tensor
    per step in backward, and P is often larger than x: hoisting alone can make it slower. The remedy is
    rnn_unbind.py.
When not to use it: as it stands; it is the middle of the story.
"""

import torch
from torch import Tensor, nn

TEACHES = "move what does not depend on the state before the loop; alone it can even be slower"
BUILTIN = "torch.nn.RNN"
SECOND_ORDER = True
COMPILES = True


class HoistedRNN(nn.Module):
    def __init__(self, inputs: int, hidden: int) -> None:
        super().__init__()
        self.from_input = nn.Linear(inputs, hidden)
        self.from_state = nn.Linear(hidden, hidden)

    def forward(self, x: Tensor) -> Tensor:
        projected = self.from_input(x)
        h = x.new_zeros(x.shape[1], self.from_state.out_features)
        states = []
        for t in range(x.shape[0]):
            h = torch.tanh(projected[t] + self.from_state(h))  # gradsmith: ignore[time-index]
            states.append(h)
        return torch.stack(states)


rnn = HoistedRNN(3, 5).to(torch.float64)

gradsmith_inputs = {"rnn": lambda: (torch.randn(4, 2, 3, dtype=torch.float64, requires_grad=True),)}
