# expect: loop-invariant
import torch
import torch.nn as nn


class LeakyRNN(nn.Module):
    def __init__(self, inputs, hidden):
        super().__init__()
        self.project = nn.Linear(inputs, hidden)
        self.symmetric = nn.Parameter(torch.randn(hidden, hidden) / hidden)

    def forward(self, x):
        h = x.new_zeros(x.shape[1], self.symmetric.shape[0])
        states = []
        for p in self.project(x).unbind(0):
            w = (self.symmetric + self.symmetric.t()) / 2
            h = 0.9 * h + 0.1 * torch.tanh(p + h @ w)
            states.append(h)
        return torch.stack(states)


rnn = LeakyRNN(3, 5).double()

gradsmith_inputs = {"rnn": lambda: (torch.randn(7, 2, 3, dtype=torch.float64, requires_grad=True),)}
